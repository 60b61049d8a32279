/* SPDX-License-Identifier: MIT */
/* libssl: loads OpenSSL when TLS is used, and looks its functions up. */
#ifndef LIBSSL_H
#define LIBSSL_H

#include "rlock.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

/* Every function of OpenSSL that tls.c calls. */
#define LIBSSL_FUNCTIONS(each)                                                                     \
    each(TLS_client_method) each(SSL_CTX_new) each(SSL_CTX_free) each(SSL_CTX_ctrl) each(          \
        SSL_CTX_set_options) each(SSL_CTX_set_verify) each(SSL_CTX_set_default_passwd_cb)          \
        each(SSL_CTX_set_default_verify_paths) each(SSL_CTX_load_verify_file)                      \
            each(SSL_CTX_load_verify_dir) each(SSL_CTX_use_certificate_chain_file) each(           \
                SSL_CTX_use_PrivateKey_file) each(SSL_new) each(SSL_free) each(SSL_ctrl)           \
                each(SSL_set_bio) each(SSL_set_connect_state) each(SSL_set_hostflags) each(        \
                    SSL_set1_host) each(SSL_get0_param) each(SSL_set_verify) each(SSL_set_cert_cb) \
                    each(SSL_do_handshake) each(SSL_read) each(SSL_write) each(SSL_get_error)      \
                        each(SSL_get_verify_result) each(X509_VERIFY_PARAM_set1_ip_asc)            \
                            each(X509_verify_cert_error_string) each(X509_STORE_CTX_get_error)     \
                                each(X509_STORE_CTX_set_error)                                     \
                                    each(X509_STORE_CTX_get_current_cert) each(X509_check_host)    \
                                        each(X509_check_ip_asc) each(BIO_s_mem) each(BIO_new)      \
                                            each(BIO_free) each(BIO_ctrl) each(BIO_read)           \
                                                each(BIO_write) each(ERR_clear_error)              \
                                                    each(ERR_peek_error)                           \
                                                        each(ERR_reason_error_string)

#define LIBSSL_MEMBER(name) __typeof__(name) *name;

struct libssl {
    LIBSSL_FUNCTIONS(LIBSSL_MEMBER)
};

/*
 * libssl_load: load the library and fill in the pointers to its functions. The library is never
 * unloaded.
 *
 * Returns  RLOCK_OK or RLOCK_E_CONFIG (the library, or one of the functions, was not found).
 */
enum rlock_status libssl_load(struct libssl *libssl, struct rlock_error *err);

#endif
