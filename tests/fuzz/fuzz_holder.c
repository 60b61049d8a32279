/* SPDX-License-Identifier: MIT */
/*
 * fuzz_holder: reads any bytes as the value of a lock's key. The text that rlock shows of this
 * value must be printable, and must not contain the token. rlock must also be able to read the
 * description of a holder that it has written itself.
 */
#include "base/utf8.h"
#include "fuzz.h"
#include "lock/holder_info.h"
#include "lock/view.h"

static bool is_shown_safely(const char *text, size_t room)
{
    if (memchr(text, '\0', room) == NULL)
        return false;
    for (size_t i = 0; text[i] != '\0'; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return false;
    return true;
}

static void check_party(const struct rlock_party *party)
{
    must(is_shown_safely(party->text, sizeof party->text));
    must(memchr(party->host, '\0', sizeof party->host) != NULL);
    must(memchr(party->user, '\0', sizeof party->user) != NULL);
    must(memchr(party->command, '\0', sizeof party->command) != NULL);
    must(memchr(party->label, '\0', sizeof party->label) != NULL);
}

/*
 * Writes the description of a holder whose host, user, command and label are `text`, and reads the
 * description back.
 */
static void write_and_read(const char *text)
{
    struct rlock_holder holder = {.host = text, .user = text, .command = text, .label = text};
    char info[HOLDER_INFO_BYTES];
    struct rlock_party party;

    holder_info_write(info, &holder, 0);
    must(memchr(info, '\0', sizeof info) != NULL && is_shown_safely(info, sizeof info));
    holder_info_parse(info, &party);
    check_party(&party);
    if (strlen(text) > 0 && strlen(text) < 40)
        must(strncmp(party.label, text, strlen(text)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = fuzz_text(data, n);
    const char *rest = holder_info_without_token(text);
    struct rlock_party party;
    char token[RLOCK_TOKEN_BYTES + 1] = "";
    char room[96];
    char hash[24];

    must(rest >= text && rest <= text + strlen(text));
    holder_info_parse_lock(text, &party);
    check_party(&party);
    if (holder_info_is_rlock(text)) {
        memcpy(token, text, RLOCK_TOKEN_BYTES);
        /*
         * The text behind the token may by chance have the token's last digits after a byte whose
         * escape, such as \xab, ends with the token's first digits. Then party.text has the token.
         */
        must(strstr(party.text, token) == NULL || strstr(rest, token + 4) != NULL);
        must(holder_info_seen(text) != RLOCK_SEEN_FOREIGN);
    }
    holder_info_parse(text, &party);
    check_party(&party);
    holder_info_set_times(&party, INT64_C(1700000000000), n > 0 ? data[0] * 1000 - 1000 : -1);
    holder_info_put_user(room, sizeof room, &party);
    must(is_shown_safely(room, sizeof room));
    holder_info_members_hash(text, hash, sizeof hash);
    must(memchr(hash, '\0', sizeof hash) != NULL);
    (void)holder_info_has(text, "mode", "shared");
    write_and_read(text);
    free(text);
    return 0;
}
