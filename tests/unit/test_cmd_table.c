/* SPDX-License-Identifier: MIT */
/* test_cmd_table: columns are as wide as their cells, and are cut and dropped on a terminal. */
#include "output/table.h"
#include "tap.h"

static const struct terminal no_terminal = {.is_terminal = false};

/* Prints a table with the given rows on a terminal of `columns` columns (0: not on a terminal). */
static void is_table(struct table table, const char *const *rows, int columns, const char *wanted,
                     const char *name)
{
    const struct terminal terminal = {.is_terminal = columns > 0, .columns = columns};
    struct outbuf out = {.text = NULL};

    for (; *rows != NULL; rows++)
        outbuf_add(&table.rows, "%s\n", *rows);
    table_print(&table, columns > 0 ? &terminal : &no_terminal, &out);
    ok(!out.has_failed, "the table is whole");
    is_str(outbuf_text(&out), wanted, name);
    table_fini(&table);
    outbuf_fini(&out);
}

#define ROWS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_widths(void)
{
    const struct table table = {.heading = {"KEY", "N", "HOLDER"}, .to_drop = {-1}};
    struct table wide = table;

    is_table(table, ROWS(NULL), 0, "", "a table without rows prints no headings");
    is_table(table, ROWS("a\t1\tx", "job:nightly\t100\tsh of root@vm"), 0,
             "KEY          N    HOLDER\n"
             "a            1    x\n"
             "job:nightly  100  sh of root@vm\n",
             "a column is as wide as its widest cell, and the last one isn't padded");
    wide.width_min[1] = 5;
    is_table(wide, ROWS("a\t1\tx"), 0, "KEY  N      HOLDER\na    1      x\n",
             "a column is at least as wide as width_min says");
    is_table(table, ROWS("\xe6\x97\xa5\xe6\x9c\xac\t1\tx", "abcd\t2\ty"), 0,
             "KEY   N  HOLDER\n\xe6\x97\xa5\xe6\x9c\xac  1  x\nabcd  2  y\n",
             "two wide characters take as many columns as four letters");
    is_table(table, ROWS("\t\t"), 0, "KEY  N  HOLDER\n        \n",
             "empty cells keep their columns");
}

static void test_narrow_terminal(void)
{
    static const char row[] = "key-of-ten\tsome\tmore\tthe last cell has 29 columns";
    const struct table table = {.heading = {"KEY", "B", "C", "LAST"}, .to_drop = {2, 3, -1}};

    is_table(table, ROWS(row), 80,
             "KEY         B     C     LAST\n"
             "key-of-ten  some  more  the last cell has 29 columns\n",
             "a table that fits the terminal is printed whole");
    is_table(table, ROWS(row), 40,
             "KEY         B     C     LAST\n"
             "key-of-ten  some  more  the last cell...\n",
             "the last column is cut first, down to 16 columns");
    is_table(table, ROWS(row), 39,
             "KEY         B     LAST\n"
             "key-of-ten  some  the last cell has ...\n",
             "with less room the first column of to_drop goes, and the last one gets its room");
    is_table(table, ROWS(row), 33, "KEY         B\nkey-of-ten  some\n",
             "with still less room the next column of to_drop goes");
    is_table(table, ROWS(row), 10, "KEY         B\nkey-of-ten  s\n",
             "a terminal too narrow for the columns that stay cuts the last of them to one column");
}

static void test_first_column(void)
{
    static const char row[] = "a-key-of-20-columns!\t17s\tsh of root@vm, pid 42";
    const struct table table = {.heading = {"KEY", "LEFT", "HOLDER"},
                                .width_min = {[1] = 6},
                                .first_min = 8,
                                .to_drop = {2, -1}};

    is_table(table, ROWS(row), 46,
             "KEY                   LEFT    HOLDER\n"
             "a-key-of-20-columns!  17s     sh of root@vm...\n",
             "the last column is cut before the first");
    is_table(table, ROWS(row), 40,
             "KEY             LEFT    HOLDER\n"
             "a-key-of-20...  17s     sh of root@vm...\n",
             "with less room the first column is cut, too");
    is_table(table, ROWS(row), 34,
             "KEY       LEFT    HOLDER\n"
             "a-key...  17s     sh of root@vm...\n",
             "the first column keeps first_min columns");
    is_table(table, ROWS(row), 33, "KEY                   LEFT\na-key-of-20-columns!  17s\n",
             "with less room a column is dropped, and the first one gets its room");
}

static void test_bars(void)
{
    const struct table table = {.heading = {"KEY", "BARS", "END"}, .bars = 1, .to_drop = {1, -1}};

    is_table(table, ROWS("a\t5000 15000\tx", "b\t0 10000\ty"), 70,
             "KEY  BARS        END\n"
             "a    ...#######  x\n"
             "b    #####       y\n",
             "bars take a seventh of the terminal, the longest one all of it");
    is_table(table, ROWS("a\t0 0\tx"), 0, "KEY  END\na    x\n",
             "elsewhere than on a terminal there are no bars");
    is_table(table, ROWS("a\t0 0\tx"), 9, "KEY  END\na    x\n", "bars can be dropped");
}

static void test_failure(void)
{
    struct table table = {.heading = {"KEY"}, .to_drop = {-1}};
    struct outbuf out = {.text = NULL};

    outbuf_add(&table.rows, "a\n");
    outbuf_fail(&table.rows);
    table_print(&table, &no_terminal, &out);
    ok(out.has_failed, "a table of which a row is missing isn't printed as if it were whole");
    table_fini(&table);
    outbuf_fini(&out);
}

static void test_colours(void)
{
    const struct terminal terminal = {
        .is_terminal = true, .can_draw = true, .has_colours = true, .columns = 80};
    struct table table = {.heading = {"KEY"}, .to_drop = {-1}};
    struct outbuf out = {.text = NULL};

    outbuf_add(&table.rows, "a\n");
    table_print(&table, &terminal, &out);
    ok(strncmp(outbuf_text(&out), "\x1b[", 2) == 0, "a terminal gets the headings in a colour");
    ok(strstr(outbuf_text(&out), "\x1b[0ma\n") != NULL, "the rows have no colour");
    table_fini(&table);
    outbuf_fini(&out);
}

TESTS(test_widths, test_narrow_terminal, test_first_column, test_bars, test_failure, test_colours)
