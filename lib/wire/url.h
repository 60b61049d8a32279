/* SPDX-License-Identifier: MIT */
/* url: parses, compares and copies the URL of a server, and masks passwords in URLs. */
#ifndef URL_H
#define URL_H

#include "rlock.h"

#include <stdbool.h>

#define URL_SENTINELS_MAX 16
#define URL_SHOWN_BYTES 80
#define URL_CLI_BYTES 160

enum url_kind { URL_TCP, URL_UNIX, URL_SENTINEL };

struct url {
    enum url_kind kind;
    char *host;       /* URL_TCP: host name, or IP address without brackets */
    char *alias;      /* URL_TCP: another host name or IP address of the server; NULL: none known */
    char *given_host; /* URL_TCP: if a server's reply named this server: the host of the user's URL,
                       * which the certificate may name instead; else NULL */
    char port[6];     /* URL_TCP: port number, in decimal */
    char *path;       /* URL_UNIX: path of the socket */
    char *user;       /* for AUTH; NULL: none */
    char *password;   /* for AUTH; NULL: none */
    int db;           /* number of the database; 0: the default, so no SELECT is sent */
    bool is_tls;      /* connect with TLS; of URL_SENTINEL: to the Sentinels and to the primary */
    char *service;    /* URL_SENTINEL: the name under which the Sentinels know the primary */
    struct url *sentinel; /* URL_SENTINEL: array of the Sentinels, each a URL_TCP */
    size_t n_sentinels;
    char shown[128]; /* for messages: "host:port", the path or the service; without the password */
};

/*
 * url_parse: read a URL. These forms are known, with %XX in every part, ?db=N instead of /N, and
 * schemes in any case of letters:
 *
 *     redis://[user[:password]@]host[:port][/N]       rediss:// for TLS
 *     redis+sentinel://[user[:password]@]host[:port][,host[:port]...]/SERVICE[/N]
 *                                                     rediss+sentinel:// for TLS to the Sentinels
 *                                                     and to the primary
 *     unix:///path[?db=N]
 *
 * valkey means redis, and valkeys rediss.
 *
 *   url  out, on RLOCK_OK only; the caller frees it with url_fini()
 *
 * Returns  RLOCK_OK, RLOCK_E_CONFIG (the error text quotes the URL with asterisks in place of what
 *          may be a password) or RLOCK_E_MEMORY.
 */
enum rlock_status url_parse(struct url *url, const char *text, struct rlock_error *err);

/*
 * url_suggest: write to `shown` the URL that the user may have meant by a text that url_parse() has
 * refused, such as "redis://localhost:6379" for "localhost:6379", with asterisks in place of a
 * password. Returns false if the text resembles no URL.
 */
bool url_suggest(const char *text, char shown[URL_SHOWN_BYTES]);

/*
 * url_cli_options: write the options with which redis-cli(1) connects to the server of a URL, such
 * as "-h HOST -p 6379", without the password. "": the text isn't the URL of one server.
 */
void url_cli_options(const char *text, char options[URL_CLI_BYTES]);

/*
 * url_at: make the URL of another server, with the user, password, database and TLS of `like`.
 *
 *   url    out, on RLOCK_OK only; the caller frees it with url_fini()
 *   alias  another host name or IP address of that server; NULL or "": none is known
 *
 * Returns  RLOCK_OK, RLOCK_E_PROTOCOL (no host, or no port from 1 to 65535) or RLOCK_E_MEMORY.
 */
enum rlock_status url_at(struct url *url, const struct url *like, const char *host,
                         const char *alias, const char *port, struct rlock_error *err);

/* url_is_number: is the host an IPv4 or IPv6 address, and not a host name? */
bool url_is_number(const char *host);

/*
 * url_copy: copy everything but `service` and `sentinel`; the caller frees `url` with url_fini().
 * Returns RLOCK_OK or RLOCK_E_MEMORY.
 */
enum rlock_status url_copy(struct url *url, const struct url *from, struct rlock_error *err);

/*
 * url_is_same: are both URLs of the same server? Compares the ports and the hosts as text, without
 * looking a name up. If one URL has an alias, its host or its alias must match the other's host; if
 * both have one, both names must match. Always false for sockets, Sentinels and empty URLs.
 */
bool url_is_same(const struct url *a, const struct url *b);

/*
 * url_find_password: return the start of the password in a text that contains a URL as url_parse()
 * reads it, such as the argument --url=URL; `*bytes` is the password's length. NULL: no password.
 */
char *url_find_password(char *text, size_t *bytes);

/* url_remove_password: remove ":password" from a URL, in place, and "@" if there is no user. */
void url_remove_password(char *url);

/*
 * url_mask: overwrite with asterisks, in place, what may be a password in each word of a text: more
 * than url_find_password() finds, as URLs of other programs have other forms, such as
 * ":password#x@host" and "token@host".
 */
void url_mask(char *text);

/* url_may_hold_password: would url_mask() change the text? */
bool url_may_hold_password(const char *text);

/* url_show: write the start of a word, masked by url_mask(), and escaped for a terminal. */
void url_show(char *out, size_t room, const char *word);

/* url_masked_copy: copy a word, masked if it contains "://"; to be freed. NULL: no memory. */
char *url_masked_copy(const char *word);

/* url_move: move `from` to `url`, whose old value is not freed, and make `from` empty. */
void url_move(struct url *url, struct url *from);

/* url_set_user: replace the user by a copy of `user`. RLOCK_OK or RLOCK_E_MEMORY. */
enum rlock_status url_set_user(struct url *url, const char *user, struct rlock_error *err);

/* url_clear_password: overwrite the password, but free nothing. */
void url_clear_password(struct url *url);

/* url_fini: clear the password, free everything, and make the URL empty. */
void url_fini(struct url *url);

#endif
