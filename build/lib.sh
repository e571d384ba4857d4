# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# What the scripts beside this file share. Plain POSIX sh, and nothing but Debian's essential
# packages until need_packages() has run. Sourced with the working directory at the top of the tree.

# Whatever else a machine has: Debian's Python is the one that packages.txt has the modules of.
PATH=/usr/bin:/bin:/usr/sbin:/sbin:$PATH
export PATH

top=$PWD

say()
{
	printf '== %s\n' "$*"
}

die()
{
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# The names in the given sections of packages.txt.
packages_in()
{
	for section; do
		sed -n "/^\[$section\]/,/^\[/{ s/#.*//; /^\[/d; s/[[:space:]]//g; /./p; }" build/packages.txt
	done
}

missing_of()
{
	for package; do
		dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
			echo "$package"
	done
}

# Runs a command as root, or prints the one line to run by hand and stops.
as_root()
{
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
		sudo "$@"
	else
		die "packages are missing, and there is neither root nor sudo here; as root, run:
    apt-get update && apt-get install --no-install-recommends $wanted"
	fi
}

# The names of those that apt does not know.
unknown_of()
{
	LC_ALL=C apt-get -s -q install --no-install-recommends "$@" 2>&1 |
		sed -n "s/^E: Unable to locate package //p; s/^E: Package '\\(.*\\)' has no installation candidate$/\\1/p"
}

# Installs or upgrades the named packages.
apt_install()
{
	wanted=$*
	as_root apt-get -q update
	# shellcheck disable=SC2086 # a list of names
	unknown=$(unknown_of $wanted | paste -s -d ' ')
	[ -z "$unknown" ] || die "apt knows no packages of these names, which Debian 12 and 13 have: $unknown"
	# shellcheck disable=SC2086 # a list of names
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0 \
		install --no-install-recommends $wanted </dev/null
}

# apt_below DIR COMMAND...: the system's lists and cache are left as they are: everything of apt's is there.
apt_below()
{
	apt=$top/$1
	shift
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
	set -- "$@" -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt/cache" \
		-o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=3 -o Acquire::Languages=none
	"$@"
}

# By the system's sources.
private_apt()
{
	apt_below out/apt "$@"
}

# apt_for DIR SOURCES COMMAND...: by these sources alone, which are in deb822's form.
apt_for()
{
	below=$1
	mkdir -p "$top/$below/parts"
	printf '%s\n' "$2" >"$top/$below/parts/debian.sources"
	shift 2
	set -- "$@" -o Dir::Etc::sourceparts="$top/$below/parts" -o Dir::Etc::sourcelist=/dev/null
	apt_below "$below" "$@"
}

# deb822_of URI SUITES: of Debian's main component.
deb822_of()
{
	printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' "$1" "$2" \
		/usr/share/keyrings/debian-archive-keyring.gpg
}

# "origin base suite component", of every index that apt knows in the system's sources, whichever
# way those are written.
indexes()
{
	# shellcheck disable=SC2016 # apt's words, not the shell's
	"$@" indextargets --format '$(ORIGIN) $(REPO_URI) $(CODENAME) $(COMPONENT)' \
		'Created-By: Packages' | tr -d '\r'
}

# "URI suite" of each of Debian's archives that this system uses. apt tells origins only when it has the lists.
debian_suites()
{
	mkdir -p out/apt
	for try in apt-get "private_apt apt-get"; do
		# shellcheck disable=SC2086 # a command and its argument
		found=$(indexes $try | sed -n 's/^Debian \([^ ]* [^ ]*\) main$/\1/p')
		[ -z "$found" ] || break
		[ "$try" != apt-get ] || private_apt apt-get -q update >out/apt/update.log 2>&1 || true
	done
	echo "$found"
}

# The mirror of Debian that this system uses.
find_mirror()
{
	mirror=$(debian_suites | sed -n 's/^\([^ ]*\) [a-z]*$/\1/p' | head -n 1)
	[ -n "$mirror" ] || die "apt knows no archive of Debian, or cannot reach it"
}

# suites_apt COMMAND...: an apt that knows nothing but these suites of Debian, from $mirror, whatever this system takes
# its packages from.
suites='trixie-backports sid'
suites_apt()
{
	apt_for out/apt/suites "$(deb822_of "$mirror" "$suites")" "$@"
}

# arm64_apt COMMAND...: an apt that knows the packages for ARM64 of the suites of Debian that this system uses, and
# believes that none is installed.
arm64_apt()
{
	[ -n "${arm64_sources:-}" ] || arm64_sources=$(debian_suites |
		while read -r uri suite; do deb822_of "$uri" "$suite"; echo; done)
	[ -n "$arm64_sources" ] || die "apt knows no archive of Debian, or cannot reach it"
	mkdir -p "$top/out/apt/arm64"
	: >"$top/out/apt/arm64/status"
	apt_for out/apt/arm64 "$arm64_sources" "$@" -o APT::Architecture=arm64 -o APT::Architectures=arm64 \
		-o Dir::State::status="$top/out/apt/arm64/status"
}

# apt_download DIR PACKAGE...: their files, into that folder. $apt_with: "suites_apt", or nothing.
apt_download()
{
	into=$1
	shift
	(cd "$into" && ${apt_with-} apt-get -q -o APT::Sandbox::User=root download "$@") >"$into/log" 2>&1 ||
		die "cannot download $*: $(sed -n 's/^E: //p' "$into/log" | head -n 1)"
	rm "$into/log"
}

need_packages()
{
	command -v apt-get >/dev/null || die "this is not Debian: install what build/packages.txt lists"
	# shellcheck disable=SC2046 # lists of names
	set -- $(missing_of $(packages_in "$@"))
	[ $# -ne 0 ] || return 0
	say "missing packages: $*"
	apt_install "$@"
}

# outdated_of PACKAGE...: those of which apt offers a newer version than the one that is installed.
outdated_of()
{
	LC_ALL=C apt-cache policy "$@" | awk '
		/^[^ ]/ { package = $1; sub(/:$/, "", package) }
		$1 == "Installed:" { installed = $2 }
		$1 == "Candidate:" { print package, installed, $2 }' |
		while read -r package installed candidate; do
			case "$installed$candidate" in
			*'(none)'*) ;;
			*) ! dpkg --compare-versions "$installed" lt "$candidate" || echo "$package" ;;
			esac
		done
}

# The libraries among the packages of these sections.
libraries_in()
{
	packages_in "$@" | grep -x 'lib.*-dev\|zlib1g-dev'
}

# need_newest SECTION...: what a program is linked with statically stays in it, with all that was found wrong with it
# later: so the libraries of these sections have to be the newest that apt offers. Who may not install is told which
# are not.
need_newest()
{
	libraries=$(libraries_in "$@")
	if [ "$(id -u)" -ne 0 ] && ! sudo -n true 2>/dev/null; then
		# shellcheck disable=SC2086 # a list of names
		outdated=$(outdated_of $libraries | paste -s -d ' ')
		[ -z "$outdated" ] || say "apt offers newer versions of what is linked: $outdated"
		return
	fi
	as_root apt-get -q update || say "apt cannot look for newer versions of the libraries"
	# shellcheck disable=SC2086 # a list of names
	outdated=$(outdated_of $libraries | paste -s -d ' ')
	[ -n "$outdated" ] || return 0
	say "newer versions of libraries: $outdated"
	# shellcheck disable=SC2086 # a list of names
	apt_install $outdated
}

# set_up SYSTEM DIR [MESON OPTION...]: a folder that was made where the libraries could not be had gets the network as
# soon as they can. One that was made with other versions of the libraries is made anew: Meson keeps their versions, and
# ninja does not see that a library is another one.
set_up()
{
	taken=out/libraries/$1/sources
	versions=$(build/versions "$1")
	dir=$2
	shift 2
	[ ! -f "$dir/libraries" ] || cmp -s "$taken" "$dir/libraries" || rm -rf "$dir"
	[ ! -f "$dir/versions" ] || [ "$(cat "$dir/versions")" = "$versions" ] || rm -rf "$dir"
	case " $* " in
	*" -Dnetwork=false "*) network=false ;;
	*) network=true ;;
	esac
	if [ ! -f "$dir/build.ninja" ]; then
		meson setup "$dir" "$@" || return
	elif [ "$(cat "$dir/network" 2>/dev/null || echo $network)" != $network ]; then
		meson configure "$dir" -Dnetwork=$network
	fi
	echo $network >"$dir/network"
	[ ! -f "$taken" ] || cp "$taken" "$dir/libraries"
	echo "$versions" >"$dir/versions"
}

# configure DIR [MESON OPTION...]: makes the libraries and the build directory, or leaves them as
# they are.
configure()
{
	case " $* " in
	*" -Dnetwork=false "*) libraries= ;;
	*) libraries=$(build/libraries linux) || return ;;
	esac
	# shellcheck disable=SC2086 # none or one option
	set_up linux "$@" $libraries
}

# configure_arm64 DIR [MESON OPTION...]: the same for ARM64.
configure_arm64()
{
	build/sysroot && libraries=$(build/libraries arm64) || return
	printf "[constants]\ntop = '%s'\n" "$PWD" >out/arm64/top.ini
	# shellcheck disable=SC2086 # none or one option
	set_up arm64 "$@" --cross-file out/arm64/top.ini --cross-file build/arm64.ini $libraries
}

# configure_windows DIR [MESON OPTION...]: the same for Windows.
configure_windows()
{
	libraries=$(build/libraries windows) || return
	mkdir -p out/windows
	printf "[constants]\ntop = '%s'\n" "$PWD" >out/windows/top.ini
	# shellcheck disable=SC2086 # none or one option
	set_up windows "$@" --cross-file out/windows/top.ini --cross-file build/windows.ini $libraries
}
