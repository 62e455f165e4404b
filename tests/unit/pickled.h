/* A pickle that several tests read, as Python writes it (pickletools.dis):
 * {'a': [1, 300, -2, 2**40], 'b': ('x', None, True, 1.5)}, protocol 2. */
#ifndef HB_TESTS_PICKLED_H
#define HB_TESTS_PICKLED_H

static const char pickled[] = "\x80\x02}q\x00(X\x01\x00\x00\x00"
                              "aq\x01]q\x02(K\x01M,\x01J\xfe\xff\xff\xff\x8a\x06\x00\x00\x00\x00"
                              "\x00\x01"
                              "eX\x01\x00\x00\x00"
                              "bq\x03(X\x01\x00\x00\x00xq\x04N\x88G?\xf8\x00\x00\x00\x00\x00\x00tq"
                              "\x05u.";

#endif
