/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is compiled of libcurl 8.14: HTTP/1.1 over TCP and Mbed TLS, through proxies or not. Names
 * are explained in lib/curl_config.h.in of its sources; for Windows lib/config-win32.h has what the
 * system is like, else the second half here says it of Linux with 64 bits.
 */
#ifndef SHIM_CURL_CONFIG_H
#define SHIM_CURL_CONFIG_H

#define HTTP_ONLY
#define USE_MBEDTLS                  1
#define USE_ARES                     1 /* no getaddrinfo() is ever called */
#define USE_IPV6                     1

#define CURL_DISABLE_ALTSVC          1
#define CURL_DISABLE_AWS             1
#define CURL_DISABLE_BEARER_AUTH     1
#define CURL_DISABLE_BINDLOCAL       1
#define CURL_DISABLE_CA_SEARCH       1
#define CURL_DISABLE_COOKIES         1
#define CURL_DISABLE_DIGEST_AUTH     1
#define CURL_DISABLE_DOH             1
#define CURL_DISABLE_FORM_API        1
#define CURL_DISABLE_GETOPTIONS      1
#define CURL_DISABLE_HEADERS_API     1
#define CURL_DISABLE_HSTS            1
#define CURL_DISABLE_IPFS            1
#define CURL_DISABLE_KERBEROS_AUTH   1
#define CURL_DISABLE_LIBCURL_OPTION  1
#define CURL_DISABLE_MIME            1
#define CURL_DISABLE_NEGOTIATE_AUTH  1
#define CURL_DISABLE_NETRC           1
#define CURL_DISABLE_NTLM            1
#define CURL_DISABLE_PROGRESS_METER  1
#define CURL_DISABLE_SHA512_256      1
#define CURL_DISABLE_VERBOSE_STRINGS 1
#define CURL_DISABLE_WEBSOCKETS      1

#ifdef _WIN32
#include "config-win32.h"
#undef USE_WIN32_LDAP
#undef HAVE_LDAP_SSL
#undef USE_UNIX_SOCKETS
#else

#ifdef __aarch64__
#define CURL_OS "aarch64-linux-gnu"
#else
#define CURL_OS "x86_64-pc-linux-gnu"
#endif
#define CURL_EXTERN_SYMBOL               __attribute__((visibility("default")))
#define SIZEOF_INT                       4
#define SIZEOF_LONG                      8
#define SIZEOF_LONG_LONG                 8
#define SIZEOF_SIZE_T                    8
#define SIZEOF_OFF_T                     8
#define SIZEOF_TIME_T                    8
#define SIZEOF_CURL_OFF_T                8
#define SIZEOF_CURL_SOCKET_T             4

#define STDC_HEADERS                     1
#define HAVE_ARPA_INET_H                 1
#define HAVE_FCNTL_H                     1
#define HAVE_IFADDRS_H                   1
#define HAVE_INTTYPES_H                  1
#define HAVE_LIBGEN_H                    1
#define HAVE_LOCALE_H                    1
#define HAVE_NETDB_H                     1
#define HAVE_NETINET_IN_H                1
#define HAVE_NETINET_TCP_H               1
#define HAVE_NETINET_UDP_H               1
#define HAVE_LINUX_TCP_H                 1
#define HAVE_NET_IF_H                    1
#define HAVE_POLL_H                      1
#define HAVE_PTHREAD_H                   1
#define HAVE_STDATOMIC_H                 1
#define HAVE_STDBOOL_H                   1
#define HAVE_STDINT_H                    1
#define HAVE_STDIO_H                     1
#define HAVE_STDLIB_H                    1
#define HAVE_STRINGS_H                   1
#define HAVE_STRING_H                    1
#define HAVE_SYS_IOCTL_H                 1
#define HAVE_SYS_PARAM_H                 1
#define HAVE_SYS_POLL_H                  1
#define HAVE_SYS_SELECT_H                1
#define HAVE_SYS_SOCKET_H                1
#define HAVE_SYS_STAT_H                  1
#define HAVE_SYS_TIME_H                  1
#define HAVE_SYS_TYPES_H                 1
#define HAVE_UNISTD_H                    1

#define HAVE_ATOMIC                      1
#define HAVE_BASENAME                    1
#define HAVE_BOOL_T                      1
#define HAVE_CLOCK_GETTIME_MONOTONIC     1
#define HAVE_CLOCK_GETTIME_MONOTONIC_RAW 1
#define HAVE_FCNTL                       1
#define HAVE_FCNTL_O_NONBLOCK            1
#define HAVE_FREEADDRINFO                1
#define HAVE_GETADDRINFO                 1
#define HAVE_GETADDRINFO_THREADSAFE      1
#define HAVE_GETPEERNAME                 1
#define HAVE_GETSOCKNAME                 1
#define HAVE_GETTIMEOFDAY                1
#define HAVE_GLIBC_STRERROR_R            1
#define HAVE_GMTIME_R                    1
#define HAVE_INET_NTOP                   1
#define HAVE_INET_PTON                   1
#define HAVE_IOCTL_FIONBIO               1
#define HAVE_LONGLONG                    1
#define HAVE_MEMRCHR                     1
#define HAVE_MSG_NOSIGNAL                1
#define HAVE_PIPE                        1
#define HAVE_PIPE2                       1
#define HAVE_POLL                        1
#define HAVE_RECV                        1
#define HAVE_SA_FAMILY_T                 1
#define HAVE_SELECT                      1
#define HAVE_SEND                        1
#define HAVE_SENDMSG                     1
#define HAVE_SIGACTION                   1
#define HAVE_SIGNAL                      1
#define HAVE_SNPRINTF                    1
#define HAVE_SOCKADDR_IN6_SIN6_SCOPE_ID  1
#define HAVE_SOCKET                      1
#define HAVE_SOCKETPAIR                  1
#define HAVE_STRCASECMP                  1
#define HAVE_STRDUP                      1
#define HAVE_STRERROR_R                  1
#define HAVE_STRUCT_SOCKADDR_STORAGE     1
#define HAVE_STRUCT_TIMEVAL              1
#define HAVE_SUSECONDS_T                 1
#endif

#endif
