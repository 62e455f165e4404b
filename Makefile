# hbmsim: `make` builds build/fast/hbmsim; `make help` lists the targets.
VERSION  := 0.1
comma    := ,
PREFIX   ?= /usr/local
CC       ?= cc
HTTP     := $(shell pkg-config --exists libmicrohttpd && echo libmicrohttpd)
PKGS     := yaml-0.1 cairo $(HTTP)
BUILD    ?= build
DATADIR  := $(PREFIX)/share/hbmsim
LIBDIR   ?= $(PREFIX)/lib
SOURCEDIR ?= $(CURDIR)
WARN     := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes \
            -Wmissing-prototypes -Wwrite-strings -Wpointer-arith -Wvla -Wformat=2 -Wswitch-enum
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
ifeq ($(SAN),1)
VARIANT  := san
MODE     := -O1 -g $(SANITIZE)
else ifeq ($(COV),1)
VARIANT  := cov
MODE     := -O0 -g --coverage
LDFLAGS  += -Wl,--wrap=_exit
else ifeq ($(TSAN),1)
VARIANT  := tsan
MODE     := -O1 -g -fsanitize=thread
else ifneq ($(FUZZ),)
# FUZZ=drawn: inputs are decisions of a generator or words of a dictionary, so what is compared
# with what tells nothing and is most of the time.
VARIANT  := fuzz$(filter-out 1,$(FUZZ))
CC       := clang
MODE     := -O1 -g $(SANITIZE) -fsanitize=fuzzer-no-link $(if $(filter drawn,$(FUZZ)),-fno-sanitize-coverage=trace-cmp)
else
VARIANT  := fast
MODE     := -O2 -g -DNDEBUG
OPT      := -O3
endif
ifeq ($(WERROR),1)
WARN     += -Werror
endif
ifneq ($(V),1)
Q        := @
endif
# Guards against what a defect could be used for: those that this compiler and linker have.
has       = $(shell echo 'int main(void) { return 0; }' | $(CC) -Werror $(1) -x c -o /dev/null - \
              >/dev/null 2>&1 && echo '$(1)')
ifeq ($(VARIANT),fast)
GUARD    := $(call has,-O2 -fstack-protector-strong) \
            $(call has,-O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
GUARD_LD := $(call has,-Wl$(comma)-z$(comma)relro$(comma)-z$(comma)now)
MODE     += $(filter-out -O2,$(GUARD))
LDFLAGS  += $(GUARD_LD)
endif
B        := $(BUILD)/$(VARIANT)
PLACES   := -DHB_VERSION='"$(VERSION)"' -DHB_SOURCE_DIR='"$(SOURCEDIR)"' -DHB_DATADIR='"$(DATADIR)"'
CPPFLAGS += -I. -D_XOPEN_SOURCE=700 $(if $(HTTP),-DHB_HTTP)
CFLAGS   += -std=c11 $(WARN) $(MODE) $(shell pkg-config --cflags $(PKGS))
LIBS     := $(shell pkg-config --libs $(PKGS)) -lglpk -lz -lm -ldl

PARTS    := base hw models models/import sim/ir sim/graph sim/eager sim/engine sim/hlo solver plots cli
SOURCES  := $(filter-out cli/main.c,$(wildcard $(PARTS:%=%/*.c)))
OBJECTS  := $(SOURCES:%.c=$(B)/%.o) $(if $(NEEDS),,$(B)/page.o) $(if $(COV),$(B)/tests/cov_exit.o)
TESTS    := $(patsubst %.c,$(B)/%,$(wildcard tests/unit/test_*.c tests/prop/test_*.c))
REPLAYS  := $(patsubst %.c,$(B)/%,$(wildcard tests/fuzz/fuzz_*.c))

# MPI=1: one more program, that differs from the other in solver/ranks.o alone.
PROGRAM  := $(B)/$(if $(filter 1,$(MPI)),mpi/)hbmsim

all: $(PROGRAM) library   ## the program (default) and the library; MPI=1: a program for mpirun, in mpi/
$(B)/$(NEEDS)libhbmsim.a: $(OBJECTS)
	$(Q)rm -f $@ && ar rcs $@ $^
$(B)/hbmsim: $(B)/cli/main.o $(B)/libhbmsim.a
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)
$(B)/mpi/ranks.o: solver/ranks.c solver/ranks.h Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -DHB_MPI $(patsubst -I%,-isystem %,$(shell pkg-config --cflags ompi-c)) \
	    -c -o $@ $<
$(B)/mpi/hbmsim: $(B)/cli/main.o $(B)/mpi/ranks.o $(B)/libhbmsim.a
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS) $(shell pkg-config --libs ompi-c)
$(B)/page.c: $(wildcard cli/page/*) cli/page.sh
	@mkdir -p $(@D)
	$(Q)sh cli/page.sh cli/page/* >$@.new && mv $@.new $@
$(B)/page.o: $(B)/page.c cli/serve_page.h Makefile
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<
$(B)/cli/main.o $(B)/lib/hbmsim.o: CPPFLAGS += $(PLACES)
$(B)/cli/main.o $(B)/lib/hbmsim.o: $(B)/places
$(B)/places: FORCE
	@mkdir -p $(@D) && echo "$(PLACES)" >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
$(B)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(OPT) $(SHARED) -MMD -MP -c -o $@ $<
$(B)/tests/fuzz/fuzz_%: tests/fuzz/fuzz_%.c tests/fuzz/replay.c $(B)/libhbmsim.a $(wildcard tests/prop/*.h)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(PLACES) $(CFLAGS) -o $@ $(filter-out %.h,$^) $(LDFLAGS) $(LIBS)
$(B)/tests/%: tests/%.c $(B)/libhbmsim.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(PLACES) $(CFLAGS) -MMD -MP -o $@ $< $(B)/libhbmsim.a $(LDFLAGS) -lcmocka $(LIBS)
$(B)/libfuzzer/%: tests/fuzz/fuzz_%.c $(B)/$(NEEDS)libhbmsim.a $(wildcard tests/prop/*.h)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(PLACES) $(CFLAGS) -fsanitize=fuzzer -o $@ $(filter-out %.h,$^) $(LDFLAGS) $(LIBS)
$(B)/fail.so: tests/torture/fail.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -D_GNU_SOURCE -fPIC -shared -o $@ $< -ldl

unit: $(TESTS) $(REPLAYS) ## builds the test programs
test: all unit            ## all tests once (minutes)
	$(Q)HB_BUILD=$(B) sh tests/all.sh
check: lint               ## lint, all tests plain and under the sanitizers, torture
	$(Q)$(MAKE) --no-print-directory test
	$(Q)$(MAKE) --no-print-directory SAN=1 test
	$(Q)$(MAKE) --no-print-directory torture
lint:                     ## the rules of the house; DEEP=1 adds clang-tidy
	$(Q)CC="$(CC)" DEEP=$(DEEP) sh tests/lint/lint.sh
golden: all               ## what commands print, against what they printed
	$(Q)HBMSIM="$(CURDIR)/$(B)/hbmsim" sh tests/golden/golden.sh
golden-update: all $(B)/tests/unit/test_told_bounds $(B)/tests/unit/test_told_plans ## takes what they print now as right: read the diff
	$(Q)HBMSIM="$(CURDIR)/$(B)/hbmsim" sh tests/golden/golden.sh update
torture: all $(B)/fail.so ## each allocation, read, write, rename fails once
	$(Q)HBMSIM="$(CURDIR)/$(B)/hbmsim" FAIL="$(CURDIR)/$(B)/fail.so" sh tests/torture/torture.sh
fuzz:                     ## T=NAME S=SECONDS: one fuzz target (needs clang)
	$(Q)T=$(T) S=$(S) BUILD=$(BUILD) MAKE="$(MAKE)" sh tests/fuzz/fuzz.sh
cov:                      ## lines and branches that the tests reach, file by file
	$(Q)$(MAKE) --no-print-directory COV=1 all unit
	$(Q)find $(BUILD)/cov -name '*.gcda' -exec rm {} +
	$(Q)HB_BUILD=$(BUILD)/cov sh tests/all.sh || true
	$(Q)sh tests/cov.sh $(BUILD)/cov
mutate:                   ## each condition of sim/ir forced: which does no record need?
	$(Q)BUILD=$(BUILD) MAKE="$(MAKE)" python3 tests/mutate.py
bench: all $(B)/tests/bench/bench $(B)/tests/bench/hlo ## how long things take here
	$(Q)HB_BUILD="$(CURDIR)/$(B)" HBMSIM="$(CURDIR)/$(B)/hbmsim" sh tests/bench/bench.sh
install: all              ## into PREFIX (/usr/local), below DESTDIR
	$(Q)HBMSIM=$(PROGRAM) VERSION=$(VERSION) LIBDIR="$(LIBDIR)" sh cli/install.sh install "$(DESTDIR)" "$(PREFIX)"
uninstall:                ## takes it away again
	$(Q)LIBDIR="$(LIBDIR)" sh cli/install.sh uninstall "$(DESTDIR)" "$(PREFIX)"
pictures: $(B)/hbmsim    ## the README's pictures, from runs made now
	$(Q)sh examples/pictures/make.sh $(B)/hbmsim
accuracy: $(B)/hbmsim    ## the table of trust; RECORDS="a.jsonl": for other records
	$(Q)HBMSIM=$(CURDIR)/$(B)/hbmsim sh tests/accuracy.sh $(RECORDS)
calibration: $(B)/hbmsim  ## the table that intervals come from, then the program with it (seconds)
	$(Q)$(B)/hbmsim validate --calibration --part learn tests/calibration/*.jsonl -o sim/engine/interval_table.c
	$(Q)$(MAKE) --no-print-directory all
clean:                    ## removes what was built
	$(Q)rm -rf $(BUILD)
help:                     ## this list
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile */rules.mk | expand -t 22
include lib/rules.mk python/rules.mk
FORCE:
.PHONY: accuracy calibration pictures all unit test check lint golden golden-update torture fuzz cov mutate bench install uninstall \
        clean help library memcheck tsan wheel dist package builds FORCE
-include $(shell find $(B) -name '*.d' 2>/dev/null)
