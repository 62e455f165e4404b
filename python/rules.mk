# A wheel: program and library linked once more, so that they find the libraries that lie beside them.
WHEEL    := $(B)/wheel
BESIDE   := -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../libs'

wheel: $(PROGRAM) library ## build/fast/wheel/hbmsim-*.whl: program, library, data, Python
	$(Q)mkdir -p $(WHEEL)/lib
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $(BESIDE) -o $(WHEEL)/hbmsim $(B)/cli/main.o $(B)/libhbmsim.a $(LIBS)
	$(Q)$(CC) $(CFLAGS) -shared -Wl,-soname,libhbmsim.so.$(ABI) $(LDFLAGS) $(BESIDE) \
	    -o $(WHEEL)/lib/libhbmsim.so.$(ABI) $(DOORS) $(B)/libhbmsim.a $(filter-out -lmicrohttpd,$(LIBS)) -lpthread
	$(Q)rm -rf $(WHEEL)/stage && cp $(B)/lib/libhbmsim.a $(WHEEL)/lib
	$(Q)HBMSIM=$(WHEEL)/hbmsim VERSION=$(VERSION) LIBDIR=/native/lib \
	    sh cli/install.sh install $(WHEEL)/stage /native
	$(Q)python3 python/wheel.py $(WHEEL)/stage/native $(VERSION) $(WHEEL)
