# The library: the program's objects behind the functions of lib/hbmsim.h, base/die.o replaced by
# lib/call.o. Nothing else of it can be seen from outside. The number is the ABI's: it grows when
# what was compiled against lib/hbmsim.h before would not run any more.
ABI      := 1
SHARED   := -fPIC -fvisibility=hidden
DOORS    := $(B)/lib/hbmsim.o $(B)/lib/call.o $(B)/lib/serve_http.o
LIBRARY  := $(if $(filter fast tsan,$(VARIANT)),$(B)/lib/libhbmsim.so.$(ABI) $(B)/lib/libhbmsim.a)

dist:                     ## build/hbmsim-VERSION.tar.gz, which builds and tests alone
	$(Q)sh cli/dist.sh $(VERSION) $(BUILD)
builds:                   ## compiles under gcc, clang, musl, 32 bits, big-endian: those that are here
	$(Q)sh tests/builds.sh
package:                  ## the tarball, Debian's packages from it, lintian, their tests in a bare chroot
	$(Q)sh tests/package.sh
mutants:                  ## N=15 SEED=1: of base, engine, graph, solver each N operators turned: which does no test notice?
	$(Q)CC="$(CC)" python3 tests/mutants.py --each $(or $(N),15) --seed $(or $(SEED),1)
memcheck: all unit        ## unit tests and one run of each command under valgrind
	$(Q)HB_BUILD=$(B) HBMSIM="$(CURDIR)/$(B)/hbmsim" sh tests/memcheck.sh
tsan:                     ## the library's threads and sweep --jobs under ThreadSanitizer
	$(Q)$(MAKE) --no-print-directory TSAN=1 all
	$(Q)BUILD=$(BUILD)/tsan CC="$(CC)" sh tests/library/tsan.sh
# The library serves no page, so that who links it needs no library for that.
$(B)/lib/serve_http.o: cli/serve_http.c cli/serve_http.h Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -UHB_HTTP $(CFLAGS) $(SHARED) -c -o $@ $<
library: $(LIBRARY)       ## libhbmsim, shared and static, in build/fast/lib
$(B)/lib/libhbmsim.so.$(ABI): $(DOORS) $(B)/libhbmsim.a
	$(Q)$(CC) $(CFLAGS) -shared -Wl,-soname,$(@F) $(if $(filter fast,$(VARIANT)),-Wl$(comma)-z$(comma)defs) \
	    $(LDFLAGS) -o $@ $^ $(filter-out -lmicrohttpd,$(LIBS)) -lpthread
$(B)/lib/libhbmsim.a: $(DOORS) $(B)/libhbmsim.a
	$(Q)$(CC) -r -nostdlib -o $(@D)/whole.o $^
	$(Q)objcopy --localize-hidden $(@D)/whole.o
	$(Q)rm -f $@ && ar rcs $@ $(@D)/whole.o
