/* SPDX-License-Identifier: MIT */
/* url: the address of a server, from text. */
#ifndef URL_H
#define URL_H

#include "rlock.h"

#include <stdbool.h>

#define URL_SENTINELS_MAX 16

enum url_kind { URL_TCP, URL_UNIX, URL_SENTINEL };

struct url {
    enum url_kind kind;
    char *host;     /* URL_TCP: name or number, without brackets */
    char *alias;    /* URL_TCP: another name or number of the same server; NULL: none is known */
    char *given;    /* URL_TCP: the host of the URL that redirected here; NULL: not redirected */
    char port[6];   /* URL_TCP */
    char *path;     /* URL_UNIX: of the socket */
    char *user;     /* NULL: none */
    char *password; /* NULL: none */
    int db;         /* 0: the default, nothing to select */
    bool is_tls;    /* URL_TCP; URL_SENTINEL: of the Sentinels and of the primary */
    char *service;  /* URL_SENTINEL: the name under which the Sentinels know the primary */
    struct url *sentinel;
    size_t n_sentinels;
    char shown[128]; /* for people: "host:port", the path or the service, never a password */
};

/*
 * url_parse: redis://[user[:password]@]host[:port][/db], the same with
 * rediss:// for TLS, unix:///path[?db=N], and for Sentinels
 * redis+sentinel://[user[:password]@]host[:port][,host[:port]...]/SERVICE[/db],
 * the same with rediss+sentinel:// for TLS to the Sentinels and to the primary,
 * with %XX in every part.
 *
 *   url  out, on RLOCK_OK only; give back with url_fini()
 *
 * Returns  RLOCK_OK, RLOCK_E_CONFIG (the text never quotes a password) or
 *          RLOCK_E_MEMORY.
 */
enum rlock_status url_parse(struct url *url, const char *text, struct rlock_error *err);

/*
 * url_at: another server's address, with user, password, database and TLS of `like`. RLOCK_OK,
 * RLOCK_E_PROTOCOL (host or port can't be right) or RLOCK_E_MEMORY.
 *
 *   alias  another name or number of that server; NULL or "": none is known
 */
enum rlock_status url_at(struct url *url, const struct url *like, const char *host,
                         const char *alias, const char *port, struct rlock_error *err);

/* url_is_number: is the host an IPv4 or IPv6 address, and not a name? */
bool url_is_number(const char *host);

/* url_copy: RLOCK_OK or RLOCK_E_MEMORY. Not of Sentinels. */
enum rlock_status url_copy(struct url *url, const struct url *from, struct rlock_error *err);

/*
 * url_is_same: is it the same server, judged by ports and names alone? Nothing is resolved. Of a
 * server with an alias, one of both names is enough.
 */
bool url_is_same(const struct url *a, const struct url *b);

/*
 * url_find_password: where the password begins in the text of a URL of ours, `*bytes` long; NULL:
 * there is none. The text may be longer than the URL, as an argument --url=URL is.
 */
char *url_find_password(char *text, size_t *bytes);

/*
 * url_mask: overwrite with asterisks, in place, all that may be a password in the URLs of a text,
 * which may have several, between blanks. It takes more for a password than url_find_password(),
 * as the URLs of other programs have other forms: ":password#x@host", "token@host".
 */
void url_mask(char *text);

/* url_may_hold_password: would url_mask() change the text? */
bool url_may_hold_password(const char *text);

/* url_masked_copy: a word, masked if it is a URL; heap; NULL: no memory. */
char *url_masked_copy(const char *word);

/* url_move: set `url`, which has nothing to free, to `from`, and make `from` empty. */
void url_move(struct url *url, struct url *from);

/* url_set_user: replace the user by a copy of `user`. RLOCK_OK or RLOCK_E_MEMORY. */
enum rlock_status url_set_user(struct url *url, const char *user, struct rlock_error *err);

/* url_clear_password: overwrite the password, but free nothing: for a forked process. */
void url_clear_password(struct url *url);

/* url_fini: clear the password, free everything, and make the URL empty. */
void url_fini(struct url *url);

#endif
