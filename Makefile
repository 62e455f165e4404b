# hbmsim: `make` builds build/fast/hbmsim; `make help` lists the targets.
VERSION  := 0.1
PREFIX   ?= /usr/local
CC       ?= cc
PKGS     := yaml-0.1 cairo
BUILD    ?= build
DATADIR  := $(PREFIX)/share/hbmsim
WARN     := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes \
            -Wmissing-prototypes -Wwrite-strings -Wpointer-arith -Wvla -Wformat=2 -Wswitch-enum
ifeq ($(SAN),1)
VARIANT  := san
MODE     := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
else ifeq ($(COV),1)
VARIANT  := cov
MODE     := -O0 -g --coverage
else
VARIANT  := fast
MODE     := -O2 -g -DNDEBUG
endif
ifeq ($(WERROR),1)
WARN     += -Werror
endif
ifneq ($(V),1)
Q        := @
endif
B        := $(BUILD)/$(VARIANT)
CPPFLAGS += -I. -D_XOPEN_SOURCE=700 -DHB_VERSION='"$(VERSION)"' -DHB_SOURCE_DIR='"$(CURDIR)"' \
            -DHB_DATADIR='"$(DATADIR)"'
CFLAGS   += -std=c11 $(WARN) $(MODE) $(shell pkg-config --cflags $(PKGS))
LIBS     := $(shell pkg-config --libs $(PKGS)) -lglpk -lz -lm -ldl

SOURCES  := $(filter-out cli/main.c,$(wildcard base/*.c hw/*.c models/*.c sim/ir/*.c sim/engine/*.c \
            sim/hlo/*.c solver/*.c plots/*.c cli/*.c))
OBJECTS  := $(SOURCES:%.c=$(B)/%.o)
TESTS    := $(patsubst %.c,$(B)/%,$(wildcard tests/unit/test_*.c tests/prop/test_*.c))

all: $(B)/hbmsim          ## the program (default)
$(B)/libhbmsim.a: $(OBJECTS)
	$(Q)rm -f $@ && ar rcs $@ $^
$(B)/hbmsim: $(B)/cli/main.o $(B)/libhbmsim.a
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)
$(B)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<
$(B)/tests/%: tests/%.c $(B)/libhbmsim.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -o $@ $< $(B)/libhbmsim.a $(LDFLAGS) -lcmocka $(LIBS)
unit: $(TESTS)            ## builds the unit tests
test: $(B)/hbmsim unit    ## unit and command-line tests (< 60 s)
	$(Q)HB_BUILD=$(B) sh tests/all.sh
check: lint               ## all tests, plain and under the sanitizers
	$(Q)$(MAKE) --no-print-directory test
	$(Q)$(MAKE) --no-print-directory SAN=1 test
clean:                    ## removes what was built
	$(Q)rm -rf $(BUILD)
help:                     ## this list
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22
.PHONY: all unit test check clean help
-include $(shell find $(B) -name '*.d' 2>/dev/null)
