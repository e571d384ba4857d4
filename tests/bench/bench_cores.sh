#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What more processors are worth: acquire, verify and export of a memory-like image in tmpfs, at one to all
# processors, beside the least that an acquisition does (cores.c, "bare"), cp and zstd in the same run.
#
#     bench_cores.sh [-s MIB] [-t SECONDS] [-d FOLDER] [-p "THREADS ..."] CORES RAMSEAL [EARLIER]
#
# CORES is what cores.c becomes. EARLIER is another ramseal to measure beside it. The image is made in FOLDER
# (default: where most memory is, /dev/shm or /tmp), with MIB mebibytes (default: a sixth of the memory that is
# available, 16384 at most), once without a kernel and once with one. What matters most comes first; behind
# SECONDS (default: 480) nothing is begun. It needs a shell, awk and coreutils, and nothing else.
#
# wall and CPU are seconds. "serial" is the largest CPU time of a thread that is no worker, in percent of all CPU
# time: while it is above 100/N, N processors are not all used. x is wall time in terms of the row that is named.
# The threads stand behind: name, how many, and the CPU time of the longest.
set -eu

size=
limit=480
folder=
points=
while getopts s:t:d:p: option; do
    case $option in
    s) size=$OPTARG ;;
    t) limit=$OPTARG ;;
    d) folder=$OPTARG ;;
    p) points=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
cores=$1
ramseal=$2
earlier=${3:-}

cpus=$(nproc)
available=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
room() {
    df -Pk "$1" 2>/dev/null | awk 'NR == 2 { print int($4 / 1024) }'
}
if [ -z "$folder" ]; then
    folder=/tmp
    [ "$(room /dev/shm || echo 0)" -gt $((available / 3)) ] && folder=/dev/shm
fi
if [ -z "$size" ]; then
    size=$((available / 6))
    [ $size -gt 16384 ] && size=16384
fi
if [ -z "$points" ]; then
    points=$cpus
    n=$((cpus / 2))
    while [ "$n" -ge 2 ]; do
        points="$points $n"
        n=$((n / 2))
    done
fi
work=$folder/ramseal-cores.$$
mkdir -m 700 "$work"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
begin=$(date +%s)

left() {
    echo $((limit - $(date +%s) + begin))
}

# measure NAME REFERENCE KEY COMMAND...: a row, unless the time is over. KEY names its wall time for later rows,
# REFERENCE is such a key or "-". What the command wrote stays until the next row.
measure() {
    name=$1 reference=$2 key=$3
    shift 3
    rest=$(left)
    if [ "$rest" -le 0 ]; then
        echo "$name: no time left"
        return 0
    fi
    rm -f "$work"/out*
    "$cores" run "$rest" "$@" >"$work/row"
    read -r status wall cpu serial peak threads <"$work/row"
    bytes=$(du -ck "$work"/out* 2>/dev/null | awk 'END { print int($1 / 1024) }')
    eval "wall_$key=\$wall"
    against=
    if [ "$reference" != - ]; then
        eval "against=\${wall_$reference:-}"
    fi
    case $status in
    0) note= ;;
    127) note='; not there' ;;
    124) note='; time is over' ;;
    *) note="; ended with $status" ;;
    esac
    awk -v name="$name" -v wall="$wall" -v cpu="$cpu" -v serial="$serial" -v peak="$peak" -v bytes="${bytes:-0}" \
        -v against="$against" -v reference="$reference" -v threads="$threads$note" 'BEGIN {
            x = against > 0 ? sprintf("%.2f %s", wall / against, reference) : "-"
            part = serial == "-" || cpu == 0 ? "-" : sprintf("%.1f%%", 100 * serial / cpu)
            printf "%-34s %7.2f %8.2f %6s %5d %6d %-13s %s\n", name, wall, cpu, part, peak, bytes, x, threads
        }'
}

# The table's core, of IMAGE at N threads.
compare() { # IMAGE N [EARLIER]
    measure "$1 bare $2" - "bare$2" "$cores" bare "$work/$1" "$work/out.bare" "$2"
    measure "$1 acquire $2" "bare$2" acquire "$ramseal" acquire -q -s "file:$work/$1" -t "$2" -o "$work/out.rsz"
    [ -z "${3:-}" ] ||
        measure "$1 acquire $2, earlier" "bare$2" acquire "$3" acquire -q -s "file:$work/$1" -t "$2" \
            -o "$work/out.rsz"
}

both() { # NAME REFERENCE ARGS...: ours, and the earlier one
    name=$1 reference=$2
    shift 2
    measure "$name" "$reference" ours "$ramseal" "$@"
    [ -z "$earlier" ] || measure "$name, earlier" "$reference" ours "$earlier" "$@"
}

echo "$cpus processors, $available MiB available, $size MiB in $folder, $limit s; $("$ramseal" --version | head -n 1)"
grep -m 1 'model name' /proc/cpuinfo || true
"$cores" make "$work/plain" "$size"
printf '%-34s %7s %8s %6s %5s %6s %-13s %s\n' what wall CPU serial 'peak' out 'x' threads
most=${points%% *}

compare plain "$most" "$earlier"
measure "plain acquire, default" "bare$most" acquire "$ramseal" acquire -q -s "file:$work/plain" -o "$work/out.rsz"
measure "plain acquire $most, no tables" "bare$most" acquire "$ramseal" acquire -q -s "file:$work/plain" -t "$most" \
    --pagetables none -o "$work/out.rsz"
measure cp - cp cp "$work/plain" "$work/out.raw"
both "store $most" cp acquire -q -s "file:$work/plain" -l store -t "$most" -o "$work/out.rsz"
measure sha256sum - sha256sum sha256sum "$work/plain"
both "--format raw" cp acquire -q -s "file:$work/plain" --format raw -o "$work/out.raw"

# With a kernel: a simulated machine's memory in front.
if [ "$size" -ge 2048 ] && [ "$(left)" -gt 0 ]; then
    "$ramseal" acquire -q -s sim:cohen2015 --format raw -o "$work/head" || true # what it lacks are zeros
    "$cores" make "$work/kernel" "$size" "$work/head"
    rm -f "$work"/head*
    compare kernel "$most" "$earlier"
    rm -f "$work/kernel"
else
    echo "with a kernel: needs 2048 MiB, and time"
fi

for n in $points; do
    [ "$n" = "$most" ] || compare plain "$n" "$([ "$n" -ge 8 ] && echo "$earlier")"
done

# What is made of a container.
[ "$(left)" -gt 0 ] || exit 0
"$ramseal" acquire -q -s "file:$work/plain" -t "$most" -o "$work/in.rsz"
measure "zstd -T0 -1" - zstd zstd -q -f -T0 -1 "$work/plain" -o "$work/in.zst"
measure "zstd -dc -T0" - unzstd sh -c "zstd -dc -q -T0 '$work/in.zst' >'$work/out.raw'"
rm -f "$work/plain"
both "verify $most" "bare$most" verify -q -t "$most" "$work/in.rsz"
for form in raw elf; do
    both "export $form $most" cp export -q --format $form -t "$most" -o "$work/out.$form" "$work/in.rsz"
done
measure "export kdump $most" cp kdump "$ramseal" export -q --format kdump -t "$most" -o "$work/out.kdump" "$work/in.rsz"
rm -f "$work"/in.*
truncate -s $((16 * size))M "$work/zeros"
measure "$((16 * size)) MiB of zeros $most" - zeros "$ramseal" acquire -q -s "file:$work/zeros" -t "$most" -o "$work/out.rsz"
echo "$((limit - $(left))) s"
