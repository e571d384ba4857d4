/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is compiled of Mbed TLS 3.6: TLS 1.2 and 1.3 for both ends, with forward secrecy and AEAD
 * only; certificates from memory. No files, no sockets of its own, no clock but for the validity
 * of certificates. Names are explained in mbedtls_config.h of its sources, in whose place this is
 * installed.
 */

/* The system: random numbers are getrandom()'s or BCryptGenRandom()'s. */
#define MBEDTLS_HAVE_ASM
#define MBEDTLS_HAVE_TIME
#define MBEDTLS_HAVE_TIME_DATE
#define MBEDTLS_PLATFORM_C
#define MBEDTLS_THREADING_C
#define MBEDTLS_THREADING_PTHREAD
#define MBEDTLS_ENTROPY_C
#define MBEDTLS_CTR_DRBG_C
#define MBEDTLS_ERROR_C
#define MBEDTLS_VERSION_C

/* TLS 1.3 does all its cryptography through PSA. */
#define MBEDTLS_PSA_CRYPTO_C
#define MBEDTLS_MD_C
#define MBEDTLS_SHA224_C
#define MBEDTLS_SHA256_C
#define MBEDTLS_SHA384_C
#define MBEDTLS_SHA512_C
#define MBEDTLS_HKDF_C
#define MBEDTLS_CIPHER_C
#define MBEDTLS_AES_C
#define MBEDTLS_AESNI_C
#define MBEDTLS_AES_FEWER_TABLES
#define MBEDTLS_GCM_C
#define MBEDTLS_CHACHA20_C
#define MBEDTLS_POLY1305_C
#define MBEDTLS_CHACHAPOLY_C

/* What processors of ARM64 may have for these: asked when it runs, as AES-NI is. */
#ifdef __aarch64__
#define MBEDTLS_AESCE_C
#define MBEDTLS_SHA256_USE_ARMV8_A_CRYPTO_IF_PRESENT
#define MBEDTLS_SHA512_USE_A64_CRYPTO_IF_PRESENT
#endif

/* Keys. */
#define MBEDTLS_BIGNUM_C
#define MBEDTLS_RSA_C
#define MBEDTLS_PKCS1_V15
#define MBEDTLS_PKCS1_V21
#define MBEDTLS_ECP_C
#define MBEDTLS_ECP_DP_SECP256R1_ENABLED
#define MBEDTLS_ECP_DP_SECP384R1_ENABLED
#define MBEDTLS_ECP_DP_SECP521R1_ENABLED
#define MBEDTLS_ECP_DP_CURVE25519_ENABLED
#define MBEDTLS_ECP_NIST_OPTIM
#define MBEDTLS_ECDH_C
#define MBEDTLS_ECDSA_C
#define MBEDTLS_ECDSA_DETERMINISTIC
#define MBEDTLS_HMAC_DRBG_C
#define MBEDTLS_ASN1_PARSE_C
#define MBEDTLS_ASN1_WRITE_C
#define MBEDTLS_OID_C
#define MBEDTLS_BASE64_C
#define MBEDTLS_PEM_PARSE_C
#define MBEDTLS_PEM_WRITE_C
#define MBEDTLS_PK_C
#define MBEDTLS_PK_PARSE_C
#define MBEDTLS_PK_WRITE_C
#define MBEDTLS_X509_USE_C
#define MBEDTLS_X509_CRT_PARSE_C
#define MBEDTLS_X509_RSASSA_PSS_SUPPORT
#define MBEDTLS_X509_CREATE_C
#define MBEDTLS_X509_CRT_WRITE_C

/* TLS. The peer's certificate is kept: its key is what a pin is compared with. */
#define MBEDTLS_SSL_TLS_C
#define MBEDTLS_SSL_CLI_C
#define MBEDTLS_SSL_SRV_C
#define MBEDTLS_SSL_PROTO_TLS1_2
#define MBEDTLS_SSL_PROTO_TLS1_3
#define MBEDTLS_SSL_TLS1_3_COMPATIBILITY_MODE
#define MBEDTLS_SSL_TLS1_3_KEY_EXCHANGE_MODE_EPHEMERAL_ENABLED
#define MBEDTLS_KEY_EXCHANGE_ECDHE_RSA_ENABLED
#define MBEDTLS_KEY_EXCHANGE_ECDHE_ECDSA_ENABLED
#define MBEDTLS_SSL_EXTENDED_MASTER_SECRET
#define MBEDTLS_SSL_SERVER_NAME_INDICATION
#define MBEDTLS_SSL_KEEP_PEER_CERTIFICATE
#define MBEDTLS_SSL_ALPN
#define MBEDTLS_SSL_ALL_ALERT_MESSAGES

/* AES before ChaCha20: here both are about as fast (400 MiB/s), and servers have hardware for AES. */
#define MBEDTLS_SSL_CIPHERSUITES                                                                   \
	MBEDTLS_TLS1_3_AES_128_GCM_SHA256, MBEDTLS_TLS1_3_AES_256_GCM_SHA384,                      \
		MBEDTLS_TLS1_3_CHACHA20_POLY1305_SHA256,                                           \
		MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,                                   \
		MBEDTLS_TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,                                     \
		MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,                                   \
		MBEDTLS_TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,                                     \
		MBEDTLS_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,                             \
		MBEDTLS_TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256
