# Reprise. `make help` lists the targets.
CC       ?= gcc
BUILD    ?= build$(if $(SAN),-$(SAN))
PREFIX   ?= /usr/local
CFLAGS   ?= -O2 -g
WARN     := -Wall -Wextra -Wpointer-arith -Wstrict-prototypes -Wno-unused-parameter
CORE     := -std=gnu17 -fPIC -fvisibility=hidden -ffp-contract=off -fno-math-errno -fno-trapping-math \
            -fno-tree-slp-vectorize -pthread -Iinclude -Isrc -I. -MMD -MP
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all)
ALLFLAGS  = $(CORE) $(WARN) $(CFLAGS) $(SANFLAGS)
LIBS     := -lm -ldl -pthread
LM_LIBS  := -lcjson -lpcre2-8

SRC      := $(sort $(shell find src -name '*.c'))
OBJ      := $(SRC:%.c=$(BUILD)/%.o)
LM_OBJ   := $(patsubst %.c,$(BUILD)/%.o,$(sort $(wildcard lm/*.c)))
CLI_OBJ  := $(patsubst %.c,$(BUILD)/%.o,$(sort $(wildcard cli/*.c)))
TESTS    := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(sort $(wildcard tests/unit/test_*.c)))

all: $(BUILD)/libmlxc.so $(if $(CLI_OBJ),$(BUILD)/reprise)

# Instruction sets by the end of a file's name: *_avx2.c and *_avx512.c. src/backend/cpu picks at start.
%_avx2.o %_avx2.pic: ISA := -mavx2 -mfma -mf16c -mbmi2
$(BUILD)/%_avx2.o: ISA := -mavx2 -mfma -mf16c -mbmi2
$(BUILD)/%_avx512.o: ISA := -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c -mbmi2 \
                            -mprefer-vector-width=512
# Kernels are loops for the vectorizer.
$(BUILD)/src/backend/cpu/%.o: OPT := -O3

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALLFLAGS) $(OPT) $(ISA) -c $< -o $@

$(BUILD)/libreprise.a: $(OBJ)
	@rm -f $@
	ar rcs $@ $^

# An archive, so that the tests of the text side link without the engine.
$(BUILD)/liblm.a: $(LM_OBJ)
	@rm -f $@
	ar rcs $@ $^

$(BUILD)/libmlxc.so: $(OBJ)
	$(CC) $(ALLFLAGS) -shared -Wl,-soname,libmlxc.so -Wl,-z,defs -Wl,-z,nodelete $^ -o $@ $(LIBS) $(IO_LIBS)

$(BUILD)/reprise: $(CLI_OBJ) $(LM_OBJ) $(BUILD)/libmlxc.so
	$(CC) $(ALLFLAGS) $(CLI_OBJ) $(LM_OBJ) -o $@ -L$(BUILD) -lmlxc '-Wl,-rpath,$$ORIGIN' $(LIBS) $(LM_LIBS)

$(BUILD)/tests/%: tests/unit/%.c $(BUILD)/liblm.a $(BUILD)/libreprise.a
	@mkdir -p $(@D)
	$(CC) $(ALLFLAGS) $< $(BUILD)/liblm.a $(BUILD)/libreprise.a -o $@ -lcmocka $(LIBS) $(LM_LIBS)

tests: $(TESTS)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
.PHONY: all tests
.DELETE_ON_ERROR:
