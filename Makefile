# SPDX-License-Identifier: Apache-2.0
# A thin front to Meson. On a machine without make, start with build/demo or build/test: they
# install what is missing.

all:
	sh -euc '. build/lib.sh; configure out/dev'
	ninja -C out/dev
	install -m 755 out/dev/agent/ramseal out/ramseal
	install -m 755 out/dev/agent/ramseal-collect out/ramseal-collect

windows:
	build/windows

arm64:
	build/arm64

demo:
	build/demo

test:
	build/test

test-long:
	build/test-long

bench: all
	build/kernel
	meson test -C out/dev --benchmark --verbose

mutants:
	sh -euc '. build/lib.sh; configure out/dev'
	tests/mutants/mutants.py

experiment:
	build/experiment

release:
	build/release

lint:
	build/lint

clean:
	rm -rf out

.PHONY: all windows arm64 demo test test-long bench mutants experiment release lint clean
