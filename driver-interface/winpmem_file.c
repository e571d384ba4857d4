/* SPDX-License-Identifier: Apache-2.0 */
#include "driver-interface/winpmem_file.h"

/* They want windows.h first. */
#include <softpub.h>
#include <wincrypt.h>
#include <wintrust.h>

#include "driver-interface/winpmem_built_in.h"
#include "formats/base/bytes.h"

/* WinPmem has 50 KiB; what is far larger is not a driver. */
#define DRIVER_MAX ((size_t)16 << 20)

void driver_bytes_deinit(struct driver_bytes *b)
{
	free(b->owned);
	*b = (struct driver_bytes){ 0 };
}

bool winpmem_is_built_in(void)
{
	return winpmem_built_in_size != 0;
}

/* Offsets of IMAGE_DOS_HEADER, IMAGE_NT_HEADERS64 (winnt.h). */
#define DOS_NEW_HEADER 0x3c
#define PE_MACHINE     4
#define PE_OPTIONAL    24
#define PE_SUBSYSTEM   (PE_OPTIONAL + 68)
#define PE_NEEDED      (PE_SUBSYSTEM + 2)

/* Said here, because Windows has one number for everything that is no driver. */
static enum status check_driver_file(const struct driver_bytes *b, const char *name, struct err *e)
{
	const uint8_t *pe;
	uint32_t at;

	if (b->len < DOS_NEW_HEADER + 4 || memcmp(b->at, "MZ", 2) != 0)
		return err_set(e, ST_INPUT, "%s: is neither a program nor a driver", name);
	at = get_le32(b->at + DOS_NEW_HEADER);
	if (!range_fits(at, PE_NEEDED, b->len) || memcmp(b->at + at, "PE\0", 4) != 0)
		return err_set(e, ST_INPUT, "%s: is neither a Windows program nor a driver", name);
	pe = b->at + at;
	if (get_le16(pe + PE_MACHINE) != IMAGE_FILE_MACHINE_AMD64)
		return err_set(e, ST_INPUT, "%s: is not for x64", name);
	if (get_le16(pe + PE_SUBSYSTEM) != IMAGE_SUBSYSTEM_NATIVE)
		return err_set(e, ST_INPUT, "%s: is a program, not a driver", name);
	return ST_OK;
}

/* As much as there is, up to one byte more than it may have. */
static enum status read_driver_file(HANDLE file, const char *name, struct driver_bytes *ret,
				    struct err *e)
{
	DWORD got;

	ret->owned = malloc(DRIVER_MAX + 1);
	if (!ret->owned)
		return err_nomem(e);
	ret->at = ret->owned;
	do {
		if (!ReadFile(file, ret->owned + ret->len, (DWORD)(DRIVER_MAX + 1 - ret->len), &got,
			      NULL))
			return err_from_win32(e, ST_INPUT, GetLastError(), "%s", name);
		ret->len += got;
	} while (got && ret->len <= DRIVER_MAX);
	if (ret->len > DRIVER_MAX)
		return err_set(e, ST_INPUT, "%s: is too large for a driver", name);
	return ST_OK;
}

enum status driver_bytes_read(const char *path, struct driver_bytes *ret, struct err *e)
{
	_cleanup_free_ wchar_t *wide = path ? win32_path(path) : NULL;
	_cleanup_handle_ HANDLE file = NULL;
	enum status st;

	if (!path && !winpmem_is_built_in())
		return err_set(e, ST_USAGE,
			       "no driver is built in; name one with --driver FILE.sys");
	if (!path) {
		*ret = (struct driver_bytes){ .at = winpmem_built_in,
					      .len = winpmem_built_in_size };
		return check_driver_file(ret, "the driver that is built in", e);
	}
	if (!wide)
		return err_nomem(e);
	file = CreateFileW(wide, GENERIC_READ, FILE_SHARE_READ, NULL, OPEN_EXISTING, 0, NULL);
	if (file == INVALID_HANDLE_VALUE)
		return err_from_win32(e, ST_INPUT, GetLastError(), "%s", path);
	st = read_driver_file(file, path, ret, e);
	return st ? st : check_driver_file(ret, path, e);
}

enum status driver_bytes_sha256(const struct driver_bytes *b, char ret[static SHA256_HEX_SIZE],
				struct err *e)
{
	uint8_t digest[SHA256_SIZE];
	struct sha256 *h = NULL;
	const enum status st = sha256_create(&h, e);

	if (st)
		return st;
	sha256_of(h, b->at, b->len, digest);
	sha256_hex(digest, ret);
	sha256_destroy(h);
	return ST_OK;
}

enum status driver_bytes_write(const struct driver_bytes *b, const wchar_t *path, struct err *e)
{
	_cleanup_handle_ HANDLE file =
		CreateFileW(path, GENERIC_WRITE, 0, NULL, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
	DWORD written = 0;

	if (file == INVALID_HANDLE_VALUE ||
	    !WriteFile(file, b->at, (DWORD)b->len, &written, NULL) || written != b->len)
		return err_from_win32(e, ST_OUTPUT, GetLastError(), "the driver's copy");
	return ST_OK;
}

bool driver_bytes_are(const struct driver_bytes *b, HANDLE file)
{
	struct driver_bytes there = { 0 };
	struct err ignored = ERR_INIT;
	const LARGE_INTEGER begin = { 0 };
	const bool ret = SetFilePointerEx(file, begin, NULL, FILE_BEGIN) &&
			 !read_driver_file(file, "", &there, &ignored) && there.len == b->len &&
			 !memcmp(there.at, b->at, b->len);

	driver_bytes_deinit(&there);
	return ret;
}

/*
 * The functions that judge signatures. Their DLLs are not among those that Windows takes from
 * System32 whatever lies beside the program (KnownDLLs), and so are not imported.
 */
#define WINTRUST_MAP(X) X(WinVerifyTrust)
#define CRYPT32_MAP(X)                                                                             \
	X(CryptQueryObject)                                                                        \
	X(CryptMsgGetParam)                                                                        \
	X(CryptMsgClose)                                                                           \
	X(CertFindCertificateInStore)                                                              \
	X(CertFreeCertificateContext)                                                              \
	X(CertGetNameStringW)                                                                      \
	X(CertCloseStore)

struct wintrust {
#define X(name) __typeof__(&name) name;
	WINTRUST_MAP(X)
#undef X
};

struct crypt32 {
#define X(name) __typeof__(&name) name;
	CRYPT32_MAP(X)
#undef X
};

#define FIND(name)                                                                                 \
	ret->name = (__typeof__(ret->name))(void (*)(void))GetProcAddress(dll, #name);             \
	if (!ret->name)                                                                            \
		return false;

static bool wintrust_load(struct wintrust *ret)
{
	const HMODULE dll = win32_load_system_dll(L"wintrust.dll");

	if (!dll)
		return false;
	WINTRUST_MAP(FIND)
	return true;
}

static bool crypt32_load(struct crypt32 *ret)
{
	const HMODULE dll = win32_load_system_dll(L"crypt32.dll");

	if (!dll)
		return false;
	CRYPT32_MAP(FIND)
	return true;
}

uint32_t driver_trust(const wchar_t *path, HANDLE opened)
{
	GUID action = WINTRUST_ACTION_GENERIC_VERIFY_V2;
	WINTRUST_FILE_INFO file = { .cbStruct = sizeof(file),
				    .pcwszFilePath = path,
				    .hFile = opened };
	WINTRUST_DATA data = {
		.cbStruct = sizeof(data),
		.dwUIChoice = WTD_UI_NONE,
		.fdwRevocationChecks = WTD_REVOKE_NONE,
		.dwUnionChoice = WTD_CHOICE_FILE,
		.pFile = &file,
		.dwStateAction = WTD_STATEACTION_VERIFY,
		.dwProvFlags = WTD_CACHE_ONLY_URL_RETRIEVAL,
	};
	struct wintrust w;
	LONG verdict;

	if (!wintrust_load(&w))
		return (uint32_t)TRUST_E_PROVIDER_UNKNOWN;
	verdict = w.WinVerifyTrust(NULL, &action, &data);
	data.dwStateAction = WTD_STATEACTION_CLOSE;
	w.WinVerifyTrust(NULL, &action, &data);
	return (uint32_t)verdict;
}

/* The message's first signer, as the store of its certificates knows it. */
static PCCERT_CONTEXT find_signer_certificate(const struct crypt32 *c, HCERTSTORE store,
					      HCRYPTMSG message)
{
	_cleanup_free_ CMSG_SIGNER_INFO *signer = NULL;
	CERT_INFO wanted = { 0 };
	DWORD len = 0;

	if (!c->CryptMsgGetParam(message, CMSG_SIGNER_INFO_PARAM, 0, NULL, &len))
		return NULL;
	signer = calloc(1, len);
	if (!signer || !c->CryptMsgGetParam(message, CMSG_SIGNER_INFO_PARAM, 0, signer, &len))
		return NULL;
	wanted.Issuer = signer->Issuer;
	wanted.SerialNumber = signer->SerialNumber;
	return c->CertFindCertificateInStore(store, X509_ASN_ENCODING | PKCS_7_ASN_ENCODING, 0,
					     CERT_FIND_SUBJECT_CERT, &wanted, NULL);
}

static char *certificate_name(const struct crypt32 *c, PCCERT_CONTEXT certificate)
{
	wchar_t name[256];

	if (c->CertGetNameStringW(certificate, CERT_NAME_SIMPLE_DISPLAY_TYPE, 0, NULL, name,
				  ARRAY_SIZE(name)) <= 1)
		return NULL;
	return win32_utf8(name);
}

char *driver_signer(const wchar_t *path)
{
	PCCERT_CONTEXT certificate;
	HCERTSTORE store = NULL;
	HCRYPTMSG message = NULL;
	struct crypt32 c;
	char *name = NULL;

	if (!crypt32_load(&c) || !c.CryptQueryObject(CERT_QUERY_OBJECT_FILE, path,
						     CERT_QUERY_CONTENT_FLAG_PKCS7_SIGNED_EMBED,
						     CERT_QUERY_FORMAT_FLAG_BINARY, 0, NULL, NULL,
						     NULL, &store, &message, NULL))
		return NULL;
	certificate = find_signer_certificate(&c, store, message);
	if (certificate)
		name = certificate_name(&c, certificate);
	if (certificate)
		c.CertFreeCertificateContext(certificate);
	c.CryptMsgClose(message);
	c.CertCloseStore(store, 0);
	return name;
}
