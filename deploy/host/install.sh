#!/bin/sh
# Installs Berth on this host, or removes it. Run it as root from the unpacked release tarball. A second run upgrades or
# repairs.
#
#   ./install.sh                         embedded mode: pools are YAML files in /etc/berth/pools.d
#   ./install.sh --kubeconfig FILE       cluster mode: FILE is an absolute path that the agent reads
#   ./install.sh --kubeconfig FILE --renew-token
#                                        the agent also renews the node-bound token in the tokenFile of FILE
#   ./install.sh uninstall               refused while addresses are in use; keeps /etc/berth: pools, kubeconfig, options
#
#   --dry-run       print what would be done
#   --root DIR      install below DIR, for images; no service is started
#   --cni-dir DIR   directory of the CNI plugins (default /opt/cni/bin), also to upgrade and to uninstall
#   --aliases-only  only berth, berth-coordinator and berth-ifacer, beside another product's coordinator and ifacer
#   --purge         uninstall: remove /etc/berth, too
#   --keep-state    uninstall: keep /var/lib/berth and logs
#   --force         uninstall although addresses are in use
set -eu

here=$(cd "$(dirname "$0")" && pwd)
action=install dry_run= root= cni_dir=/opt/cni/bin aliases_only= keep_state= purge= force= kubeconfig= renew_token= left= next=
UNIT=berth-agent.service
# The commands of users.
PROGRAMS="berthctl kubectl-berth kubectl_complete-berth"
COMPLETIONS="bash-completion/completions/berthctl zsh/site-functions/_berthctl fish/vendor_completions.d/berthctl.fish"
# Where Podman 5 looks for drivers of networks.
DRIVERS=/usr/local/libexec/netavark

usage() { sed -n '2,/^set -eu/s/^# \{0,1\}//p' "$0" | sed '$d'; }
fail() { echo "install.sh: $*" >&2; exit 1; }

while [ $# -gt 0 ]; do
    case $1 in
    install | uninstall) action=$1 ;;
    --dry-run) dry_run=yes ;;
    --root | --cni-dir | --kubeconfig)
        # An empty variable of the caller's must not mean this host, or no cluster.
        case $1=${2-} in
        --root=?*) root=${2%/} ;;
        --cni-dir=/*) cni_dir=$2 ;;
        --kubeconfig=/*) kubeconfig=$2 ;;
        *) fail "option $1: found \"${2-}\", want a path from /" ;;
        esac
        shift
        ;;
    --renew-token) renew_token=yes ;;
    --aliases-only) aliases_only=yes ;;
    --keep-state) keep_state=yes ;;
    --purge) purge=yes ;;
    --force) force=yes ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
    esac
    shift
done

[ -z "$renew_token" ] || [ -n "$kubeconfig" ] || fail "--renew-token needs --kubeconfig"
options_file=$root/etc/berth/agent.env

# Prints the command, and executes it unless this is a dry run.
run() {
    echo "$*"
    [ -n "$dry_run" ] || "$@"
}

# The service manager of this host, unless another root is installed.
manages_services() { [ -z "$root" ] && [ -d /run/systemd/system ]; }

# put MODE SOURCE TARGET: by rename. Nothing happens when it is the same.
put() {
    target=$root$3
    if [ -f "$target" ] && cmp -s "$2" "$target"; then return; fi
    run mkdir -p "$(dirname "$target")"
    run install -m "$1" "$2" "$target.berth-new"
    run mv -f "$target.berth-new" "$target"
}

# put_once MODE SOURCE TARGET: a file that belongs to the administrator afterwards.
put_once() { [ -e "$root$3" ] || put "$@"; }

install_version() {
    version=$(cat "$here/VERSION")
    release=$root/opt/berth/$version
    if [ ! -e "$release/VERSION" ] || ! diff -r "$here/lib" "$release/lib" >/dev/null 2>&1; then
        run rm -rf "$release.berth-new"
        run mkdir -p "$release.berth-new"
        run cp -R "$here/bin" "$here/lib" "$here/share" "$here/install.sh" "$here/systemd" "$here/examples" "$here/cni" "$here/VERSION" "$here/LICENSE" "$here/THIRD_PARTY_LICENSES" "$release.berth-new/"
        run rm -rf "$release"
        run mv "$release.berth-new" "$release"
    fi
    before=$(readlink "$root/opt/berth/current" 2>/dev/null) || before=
    if [ "$before" != "$version" ]; then
        run ln -sfn "$version" "$root/opt/berth/current.berth-new"
        run mv -fT "$root/opt/berth/current.berth-new" "$root/opt/berth/current"
        remove_versions
    fi
    for program in $PROGRAMS; do link "/opt/berth/current/bin/$program" "/usr/local/bin/$program"; done
    for file in $COMPLETIONS; do link "/opt/berth/current/share/$file" "/usr/local/share/$file"; done
    link /opt/berth/current/cni/berth "$DRIVERS/berth"
    remove_pages
}

# Leaves the version in use, and the one before for the way back.
remove_versions() {
    for file in "$root"/opt/berth/*/VERSION; do
        case $file in
        */current/VERSION | */"$version"/VERSION | */"${before##*/}"/VERSION) ;;
        *) [ ! -e "$file" ] || run rm -rf "${file%/VERSION}" ;;
        esac
    done
}

# link TARGET PATH: unless it is one.
link() {
    if [ "$(readlink "$root$2" 2>/dev/null)" = "$1" ]; then return; fi
    run mkdir -p "$(dirname "$root$2")"
    run ln -sfn "$1" "$root$2"
}

# Removes the links to man pages, which releases up to 0.4.0 had.
remove_pages() {
    for page in "$root"/usr/local/share/man/man?/*; do
        case $(readlink "$page" 2>/dev/null) in
        /opt/berth/*) run rm -f "$page" ;;
        esac
    done
}

# Before any change: a package's unit would be hidden by this one's, and the options of the agent are the administrator's.
require_host() {
    [ ! -e "$root/usr/lib/berth/bin/berth-agent" ] || fail "a package has installed Berth here; upgrade that, or remove it first"
    [ -e "$options_file" ] || return 0
    words=" $(tr -s "\n\t =\"'" '      ' <"$options_file") "
    for option in ${kubeconfig:+"--kubeconfig $kubeconfig"} ${renew_token:+--renew-token}; do
        case $words in
        *" $option "*) ;;
        *) fail "$options_file lacks $option; edit it, or remove it and repeat" ;;
        esac
    done
}

install_options() {
    [ ! -e "$options_file" ] || return 0
    options="--config /etc/berth/pools.d"
    next="Pools are files in /etc/berth/pools.d, such as /etc/berth/pool.yaml.example; to see them: berthctl pools"
    [ -z "$kubeconfig" ] || options="--kubeconfig $kubeconfig${renew_token:+ --renew-token}" next="To see whether all is well: berthctl check"
    echo "write $options_file: BERTH_AGENT_OPTIONS=$options"
    [ -n "$dry_run" ] || {
        printf '# Options of berth-agent, see berth-agent --help.\nBERTH_AGENT_OPTIONS=%s\n' "$options" >"$options_file.berth-new"
        mv "$options_file.berth-new" "$options_file"
    }
}

install_all() {
    for part in bin lib share cni systemd VERSION; do
        [ -e "$here/$part" ] || fail "$here/$part is missing; run install.sh from the unpacked release tarball"
    done
    require_host
    # First, since it refuses to replace another product's files. Network lists are the administrator's.
    "$here/bin/berth-agent" install --plugins-only --cni-bin-dir "$root$cni_dir" ${aliases_only:+--aliases-only} ${dry_run:+--dry-run}
    install_version
    [ -d "$root/etc/berth/pools.d" ] || run mkdir -p "$root/etc/berth/pools.d"
    install_options
    put_once 0644 "$here/examples/pool.yaml" /etc/berth/pool.yaml.example
    put 0644 "$here/systemd/$UNIT" /etc/systemd/system/$UNIT
    put 0644 "$here/systemd/berth.tmpfiles.conf" /etc/tmpfiles.d/berth.conf
    put 0644 "$here/systemd/berth.logrotate" /etc/logrotate.d/berth
    # Of the version before; its agent may leave some once more when it stops.
    remove /var/cache/berth
    if manages_services; then
        run systemd-tmpfiles --create berth.conf
        run systemctl daemon-reload
        run systemctl enable $UNIT
        run systemctl restart $UNIT
        [ -z "$next" ] || echo "$next"
    elif [ -z "$root" ]; then
        echo "systemd does not run here, so no agent was started; run /opt/berth/current/bin/berth-agent with the options in /etc/berth/agent.env"
    fi
}

# Prints the addresses in use, none when there are none: all but the cooling ones. An agent that does not answer is no
# permission, nor is one whose berthctl is gone: this release has its own.
list_addresses() {
    [ -z "$root" ] && [ -e /var/lib/berth/state ] || return 0
    for state in bound kept quarantined; do
        "$here/bin/berthctl" allocations --state $state --output name || {
            [ -z "$force" ] || return 0
            fail "the agent does not answer, so addresses may be in use; start it with: systemctl start $UNIT, or use --force"
        }
    done
}

# A mount point is emptied and stays. Other files that cannot be removed do not stop the rest, and are named at the end.
remove() {
    if [ -e "$root$1" ] || [ -L "$root$1" ]; then
        run rm -rf "$root$1" || [ -z "$(find "$root$1" ! -type d)" ] || left="$left $root$1"
    fi
}

uninstall_all() {
    used=$(list_addresses) || exit 1
    if [ -n "$used" ] && [ -z "$force" ]; then
        "$here/bin/berthctl" allocations >&2 || echo "$used" >&2
        fail "refused: these addresses are in use. Remove their containers first, or use --force"
    fi
    if manages_services && [ -e /etc/systemd/system/$UNIT ]; then run systemctl disable --now $UNIT; fi
    "$here/bin/berth-agent" uninstall --cni-bin-dir "$root$cni_dir" --cni-conf-dir "$root/etc/cni/net.d" \
        --run-dir "$root/run/berth" --state-dir "$root/var/lib/berth" --log-dir "$root/var/log/vendor" \
        ${root:+--files-only} ${keep_state:+--keep-state} ${dry_run:+--dry-run}
    remove /etc/systemd/system/$UNIT
    remove /etc/tmpfiles.d/berth.conf
    remove /etc/logrotate.d/berth
    for program in $PROGRAMS; do remove "/usr/local/bin/$program"; done
    for file in $COMPLETIONS; do remove "/usr/local/share/$file"; done
    remove "$DRIVERS/berth"
    [ ! -d "$root$DRIVERS" ] || run rmdir --ignore-fail-on-non-empty "$root$DRIVERS"
    remove_pages
    remove /opt/berth
    remove /var/cache/berth
    if [ -n "$purge" ]; then
        remove /etc/berth
    elif [ -e "$root/etc/berth" ]; then
        remove /etc/berth/pool.yaml.example
        echo "kept $root/etc/berth; --purge removes it"
    fi
    if manages_services; then run systemctl daemon-reload; fi
    [ -z "$left" ] || fail "these were not removed:$left"
}

if [ -z "$root" ] && [ -z "$dry_run" ] && [ "$(id -u)" != 0 ]; then fail "only root may install; use sudo"; fi
"${action}_all"
