/* SPDX-License-Identifier: MIT */
/* url: the address of a server, from text. */
#ifndef URL_H
#define URL_H

#include "rlock.h"

#include <stdbool.h>

enum url_kind { URL_TCP, URL_UNIX };

struct url {
    enum url_kind kind;
    char *host;      /* URL_TCP: name or number, without brackets */
    char port[6];    /* URL_TCP */
    char *path;      /* URL_UNIX: of the socket */
    char *user;      /* NULL: none */
    char *password;  /* NULL: none */
    int db;          /* 0: the default, nothing to select */
    bool is_tls;     /* URL_TCP */
    char shown[128]; /* for people: "host:port" or the path, never a password */
};

/*
 * url_parse: redis://[user[:password]@]host[:port][/db], the same with
 * rediss:// for TLS, and unix:///path[?db=N], with %XX in every part.
 *
 *   url  out, on RLOCK_OK only; give back with url_fini()
 *
 * Returns  RLOCK_OK, RLOCK_E_CONFIG (the text never quotes a password) or
 *          RLOCK_E_MEMORY.
 */
enum rlock_status url_parse(struct url *url, const char *text, struct rlock_error *err);

/* url_fini: clear the password and free. */
void url_fini(struct url *url);

#endif
