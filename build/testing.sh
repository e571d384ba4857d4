# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# What build/test and build/test-long share: builds and test runs that are counted. Sourced behind
# lib.sh.

began=${began:-$(date +%s)} # a lane's is its caller's
passed=0
failed=0
skipped=0
twice=
log=testlog # below meson-logs: a lane has a name of its own
costs=out/costs
lane= # what runs beside, a process
lane_of=
trap end_lane EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Servers of others that the tests upload to, where npm has them. Skipped by name, because a test of
# several servers says in its log alone that one was not there.
npm_servers()
{
	build/npm 2>out/npm.log && return
	skipped=$((skipped + 1))
	say "SKIPPED: what is tested with servers from npm: $(tail -n 1 out/npm.log)"
}

# say() with the time that has passed.
say_when()
{
	seconds=$(($(date +%s) - began))
	say "$1, after $((seconds / 60)) min $((seconds % 60)) s"
}

# A whole run leaves some 9 GiB below out/, and a disk that fills in the middle of it makes failures of all kinds.
check_room()
{
	room=$(df -Pk . | awk 'NR == 2 { print int($4 / 1048576) }')
	[ "$room" -ge 10 ] || say "only $room GiB are free here: if all is built anew, 10 may be needed"
}

# Where what everything takes is kept, empty. build/costs prints it at the end.
begin_costs()
{
	rm -rf "$costs"
	mkdir -p "$costs"
	gcc -O2 -D_GNU_SOURCE -o "$costs/measure" build/measure.c
}

# charge NAME COMMAND...: runs it, and writes down the processor time and the time by the clock, in seconds. In a
# shell of its own, which has no other children.
charge()
(
	charged=$1
	shift
	clock=$(date +%s)
	"$@" && ended=0 || ended=$?
	times >"$costs/$log.times"
	awk -v name="$charged" -v clock=$(($(date +%s) - clock)) '
		function seconds(t) { split(t, part, /[ms]/); return 60 * part[1] + part[2] }
		NR == 2 { printf "%s\t%.0f\t%d\n", name, seconds($1) + seconds($2), clock }' \
		"$costs/$log.times" >>"$costs/lanes"
	return "$ended"
)

# wanted PART: not if RAMSEAL_WITHOUT, a list with blanks, names it. That is said, and counted as skipped. Whatever
# else is not to be had, such as sources without a network, is a failure: nobody reads what passed by not running.
wanted()
{
	case " ${RAMSEAL_WITHOUT-} " in
	*" $1 "*)
		skipped=$((skipped + 1))
		say "SKIPPED: $1, as RAMSEAL_WITHOUT says"
		return 1
		;;
	esac
}

check_wanted()
{
	for part in ${RAMSEAL_WITHOUT-}; do
		case $part in
		arm64 | fresh | guests | network | sanitizers | windows) ;;
		*) die "RAMSEAL_WITHOUT takes arm64, fresh, guests, network, sanitizers and windows, not $part" ;;
		esac
	done
	without_network=
	wanted network || without_network=-Dnetwork=false
}

# step NAME COMMAND...: something that must succeed for the counts to mean anything.
step()
{
	say_when "$1"
	charge "$@" && return
	shift
	failed=$((failed + 1))
	say "FAILED: $*"
	return 1
}

# Whether DIR has what goes over a network, unless it was told not to.
has_network()
{
	case " $* $without_network " in
	*" -Dnetwork=false "*) return ;;
	esac
	[ "$(cat "$1/network")" = true ] && return
	say "$1 would be built without network: the sources of its libraries cannot be had"
	return 1
}

# build DIR [MESON OPTION...]: what the tests need. Nobody debugs that: lines in a sanitizer's report are enough.
build()
{
	# shellcheck disable=SC2086 # none or one option
	configure "$@" -Dwerror=true -Dc_args=-g1 $without_network >"$1.configure.log" ||
		{ cat "$1.configure.log"; return 1; }
	has_network "$@" || return
	ninja -C "$1" --quiet meson-test-prereq
}

build_sanitized()
{
	build out/sanitize --native-file build/clang.ini -Db_sanitize=address,undefined -Db_lundef=false
}

build_arm64()
{
	{
		WERROR=true build/arm64 && has_network out/arm64/build &&
			ninja -C out/arm64/build --quiet meson-test-prereq
	} >out/arm64.log 2>&1 || { tail -n 40 out/arm64.log; return 1; }
}

# Its tests compare it with gcc's build.
build_windows()
{
	{
		NATIVE_RAMSEAL=$PWD/out/test/agent/ramseal WERROR=true build/windows &&
			has_network out/windows/build &&
			ninja -C out/windows/build --quiet meson-test-prereq
	} >out/windows.log 2>&1 || { tail -n 40 out/windows.log; return 1; }
}

# The log of the last run in DIR. Meson adds the wrapper's name to it.
log_of()
{
	echo "$1/meson-logs/$log-measure"
}

# How many tests of the last run in DIR ended with RESULT. The log has one JSON object a line, and
# quotes inside a test's own output are escaped, so the pattern finds the verdict only.
count()
{
	grep -c "\"result\": \"$2\"" "$(log_of "$1").json" || true
}

# What did not pass in DIR's last run and shares the machine with emulators, servers, or processes that are
# killed: all of Windows, and everything but unit tests and the fuzzers' inputs.
unsettled()
{
	grep -v '"result": "\(OK\|SKIP\)"' "$(log_of "$1").json" |
		sed -n 's,^{"name": "[^"]* / \([^"]*\)".*,\1,p' |
		case $1 in
		*windows*) cat ;;
		*) grep -v '^\(unit\|fuzz\)/' ;;
		esac || true
}

# On a busy machine QEMU and Wine have failed by themselves: a kernel that gave up on its timer, services
# that did not start; so have tests that race with a process. They get a second chance, and the end of the run
# says which needed it; what is wrong fails twice.
second_chance()
{
	again=$(unsettled "$1" | tr '\n' '|')
	[ -n "$again" ] || return 0
	say "once more: $again"
	(
		IFS='|'
		# shellcheck disable=SC2086 # a list of names, which may have blanks
		measured "$1" $setup --no-rebuild $again
	) || true
	mended=$(count "$1" OK)
	ok=$((ok + mended))
	bad=$((bad - mended))
	[ "$mended" -eq 0 ] || twice="$twice $mended of $again"
}

# measured DIR [MESON TEST OPTION...]: each test adds a line to a file for build/costs.
measured()
{
	to=$costs/$(echo "$1" | tr / _)-$log
	printf '%s\t%s\n' "$1" "$to" >>"$costs/runs"
	meson test -C "$@" --logbase "$log" --print-errorlogs --wrapper "'$PWD/$costs/measure' '$PWD/$to'" &&
		result=0 || result=$?
	cat "$(log_of "$1").json" >>"$to.json"
	return "$result"
}

# run_tests DIR [MESON TEST OPTION...]
# Twice as many at a time as there are CPUs: tests of the network mostly wait. Wine's services do not bear
# that, and get one each; guests are one at a time anyway (is_parallel in tests/vm).
run_tests()
{
	say_when "running the tests of $1"
	rm -f "$(log_of "$1").json"
	case " $* " in
	*" --setup=whole "*) setup=--setup=whole ;;
	*) setup= ;;
	esac
	case $1 in
	*windows*) at_once=$(nproc) ;;
	*) at_once=$((2 * $(nproc))) ;;
	esac
	charge "tests of $1${lane_of:+: $lane_of}" measured "$@" --num-processes "$at_once" && ended=0 || ended=$?
	if ! [ -s "$(log_of "$1").json" ]; then
		failed=$((failed + 1))
		say "FAILED: no test ran in $1"
		return
	fi
	# What a test measured and wants seen.
	sed -n 's/^note: /   /p' "$(log_of "$1").txt"
	ok=$(count "$1" OK)
	skip=$(count "$1" SKIP)
	bad=$(($(grep -c '' "$(log_of "$1").json") - ok - skip))
	[ "$ended" -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
	[ "$bad" -eq 0 ] || second_chance "$1"
	passed=$((passed + ok))
	skipped=$((skipped + skip))
	failed=$((failed + bad))
}

# begin_lane NAME COMMAND...: beside what follows, in a session of its own, with what it says in a file.
begin_lane()
{
	lane_name=$1
	rm -f "out/$lane_name.counts"
	# shellcheck disable=SC2016 # for that shell
	began=$began setsid sh -euc '
		. build/lib.sh
		. build/testing.sh
		log=$1 lane_of=$1
		shift
		"$@"
		printf "%s %s %s %s\n" "$passed" "$failed" "$skipped" "$twice" >"out/$log.counts"
	' sh "$@" >"out/$lane_name.log" 2>&1 &
	lane=$!
}

end_lane()
{
	[ -z "$lane" ] || kill -- "-$lane" 2>/dev/null || true
	lane=
}

# Waits for the lane, and counts what it counted.
join_lane()
{
	[ -n "$lane" ] || return 0
	say_when "waiting for $lane_name"
	wait "$lane" || true
	lane=
	cat "out/$lane_name.log"
	if ! read -r lane_passed lane_failed lane_skipped lane_twice <"out/$lane_name.counts"; then
		failed=$((failed + 1))
		say "FAILED: $lane_name ended early"
		return
	fi
	passed=$((passed + lane_passed))
	failed=$((failed + lane_failed))
	skipped=$((skipped + lane_skipped))
	twice="$twice${lane_twice:+ $lane_twice}"
}

# What it took, then the last line of a run, and its exit code.
summarise()
{
	join_lane # a lane that nobody has waited for is not counted
	build/costs "$costs" || true
	[ -z "$twice" ] || say "passed only the second time:$twice"
	if [ "$failed" -gt 0 ]; then
		say "logs: out/*/meson-logs/testlog.txt"
	fi
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ]
}
