# Reprise. `make help` lists the targets; `make V=1` shows the commands.
MAKEFLAGS += --jobs=$(shell nproc)
Q         := $(if $(V),,@)
CC       ?= gcc
PREFIX   ?= /usr/local
BUILD    ?= build$(if $(SAN),-$(subst $(comma),-,$(SAN)))
CFLAGS   ?= -O2
comma    := ,
WARN     := -Wall -Wextra -Wpointer-arith -Wstrict-prototypes -Wno-unused-parameter
CORE     := -std=gnu17 -fPIC -fvisibility=hidden -ffp-contract=off -fno-math-errno -fno-trapping-math -fno-strict-aliasing -fno-tree-slp-vectorize \
            -pthread -Iinclude -Isrc -I. -MMD -MP
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all)
ALLFLAGS  = $(CORE) $(WARN) $(CFLAGS) $(SANFLAGS)
LIBS     := -lm -pthread
LM_LIBS  := -lcjson -lpcre2-8

objects   = $(patsubst %.c,$(BUILD)/%.o,$(sort $(1)))
OBJ      := $(call objects,$(shell find src -name '*.c'))
LM_OBJ   := $(call objects,$(wildcard lm/*.c))
CLI_OBJ  := $(call objects,$(wildcard cli/*.c))
TESTS    := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(sort $(wildcard tests/unit/test_*.c)))
BENCHES  := $(patsubst bench/%.c,$(BUILD)/bench/%,$(sort $(wildcard bench/*.c)))
FUZZERS  := $(patsubst fuzz/%.c,$(BUILD)/fuzz/%,$(sort $(wildcard fuzz/*.c)))
FUZZ_SRC := $(wildcard src/base/*.c src/core/*.c src/io/*.c)
CLANGS   := clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14
CLANG    ?= $(firstword $(foreach name,$(CLANGS),$(shell command -v $(name))))
EXAMPLES := $(patsubst examples/%.c,$(BUILD)/examples/%,$(sort $(wildcard examples/*.c)))

all: $(BUILD)/libmlxc.so $(BUILD)/reprise ## build the library and the command into build/

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | expand -t 12

# Instruction sets by the end of a file's name; src/backend/cpu picks one at start.
$(BUILD)/%_avx2.o: ISA := -mavx2 -mfma -mf16c -mbmi2
$(BUILD)/%_avx512.o: ISA := -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c -mbmi2 \
                            -mprefer-vector-width=512
# gcc 12 drops a rounding to float between two doubles when it packs straight-line code (SLP); loops are
# not affected.
# Kernels are loops for the vectorizer.
$(BUILD)/src/backend/cpu/%.o $(BUILD)/src/io/blocks.o: OPT := -O3

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	@$(if $(V),,echo "CC $<")
	$(Q)$(CC) $(ALLFLAGS) $(OPT) $(ISA) -c $< -o $@

$(BUILD)/libreprise.a: $(OBJ)
	@rm -f $@
	$(Q)ar rcs $@ $^

$(BUILD)/libmlxc.so: $(OBJ)
	@$(if $(V),,echo "LD $@")
	$(Q)$(CC) $(ALLFLAGS) -shared -Wl,-soname,libmlxc.so -Wl,-z,defs -Wl,-z,nodelete $^ -o $@ $(LIBS)

$(BUILD)/reprise: $(CLI_OBJ) $(LM_OBJ) $(BUILD)/libmlxc.so
	@$(if $(V),,echo "LD $@")
	$(Q)$(CC) $(ALLFLAGS) $(CLI_OBJ) $(LM_OBJ) -o $@ -L$(BUILD) -lmlxc '-Wl,-rpath,$$ORIGIN:$$ORIGIN/../lib' $(LIBS) $(LM_LIBS)

# Unit tests see the internals: they link the objects, not the shared library.
# An archive, so that the tests of the text side link without the engine.
$(BUILD)/liblm.a: $(LM_OBJ)
	@rm -f $@
	$(Q)ar rcs $@ $^

$(BUILD)/tests/%: tests/unit/%.c $(BUILD)/liblm.a $(BUILD)/libreprise.a
	@mkdir -p $(@D)
	@$(if $(V),,echo "LD $@")
	$(Q)$(CC) $(ALLFLAGS) $< $(BUILD)/liblm.a $(BUILD)/libreprise.a -o $@ -lcmocka $(LIBS) $(LM_LIBS)

$(BUILD)/bench/%: bench/%.c $(BUILD)/libreprise.a
	@mkdir -p $(@D)
	@$(if $(V),,echo "LD $@")
	$(Q)$(CC) $(ALLFLAGS) $< $(BUILD)/libreprise.a -o $@ $(LIBS)

# Examples are what a user would build: public headers, the shared library, nothing else.
$(BUILD)/examples/%: examples/%.c $(BUILD)/libmlxc.so
	@mkdir -p $(@D)
	@$(if $(V),,echo "LD $@")
	$(Q)$(CC) -std=c17 -Wall -Wextra -Iinclude $< -o $@ -L$(BUILD) -lmlxc '-Wl,-rpath,$$ORIGIN/..' -lm

# What reads foreign bytes, compiled anew with clang for each fuzzer.
$(BUILD)/fuzz/%: fuzz/%.c $(FUZZ_SRC)
	@mkdir -p $(@D)
	@test -n "$(CLANG)" || { echo "make fuzz needs clang; it is not installed."; exit 1; }
	$(CLANG) $(filter-out -M%,$(CORE)) -O1 -g -fsanitize=fuzzer,address $^ -o $@ $(LIBS)

tests: $(TESTS)
examples: $(EXAMPLES) ## build the examples
bench: $(BENCHES) $(BUILD)/reprise ## build the benchmarks into build/bench/

deps: ## install the Debian packages that building and testing need
	tools/deps

model: deps $(BUILD)/reprise ## fetch SmolLM2-135M-Instruct into the cache
	$(BUILD)/reprise fetch smollm2-135m-instruct

demo: deps ## set up everything and let SmolLM2 tell a joke
	$(MAKE) all
	$(BUILD)/reprise fetch smollm2-135m-instruct
	$(BUILD)/reprise generate --model smollm2-135m-instruct --stats \
	  --temperature 0.7 --top-p 0.9 --seed 3 "Tell me a joke"

test: tests ## run the unit tests (SAN=address,undefined or SAN=thread for a sanitizer build)
	tests/run $(TESTS)

# Threads alone: ThreadSanitizer makes every test ten times slower.
THREAD_TESTS := test_threads test_cases_ffi test_base_thread test_api_vector test_api_error
test-threads: ## run the tests of threads under ThreadSanitizer
	$(MAKE) SAN=thread CFLAGS="-O1 -g" TESTS="$(THREAD_TESTS:%=build-thread/tests/%)" test

fuzz: $(FUZZERS) ## build the fuzzers into build/fuzz/ with clang

check: deps ## set up everything and run every test
	$(MAKE) all tests examples
	$(BUILD)/reprise fetch smollm2-135m-instruct
	BUILD=$(BUILD) tests/check $(TESTS)

layers: ## fail on an include against the order of the folders
	tools/layers

install: all ## install headers, library, command and package files under PREFIX
	BUILD=$(BUILD) tools/install "$(DESTDIR)$(PREFIX)" "$(PREFIX)"

clean: ## remove all build folders
	rm -rf build build-*

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
.PHONY: all help tests examples bench deps model demo test test-threads fuzz check layers install clean
.DELETE_ON_ERROR:
