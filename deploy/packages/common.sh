# The common part of both formats' scripts. The build puts it into each of them.

UNIT=berth-agent.service
AGENT=/usr/lib/berth/bin/berth-agent

# Not beside an installation of install.sh: its unit would hide the package's.
refuse_other_installation() {
    [ ! -e /opt/berth/current ] && return
    echo "berth: install.sh of a tarball has installed Berth here. Remove that first; addresses and settings stay:" >&2
    echo "  /opt/berth/current/install.sh uninstall --keep-state" >&2
    exit 1
}

# Runtimes look for plugins there, in whatever way they were installed. Each is replaced by rename, also while a runtime
# executes it. Another product's are left alone.
install_plugins() {
    "$AGENT" install --plugins-only >/dev/null && return
    "$AGENT" install --plugins-only --aliases-only >/dev/null
    echo "berth: installed berth, berth-coordinator and berth-ifacer only, beside the other product's plugins" >&2
}

# V8's compiled code of the previous version.
drop_cache() { rm -rf /var/cache/berth; }

# True if pods may have addresses: then their network and the plugins must stay.
has_addresses() {
    [ -e /var/lib/berth/state ] || return 1
    for state in bound kept quarantined; do
        used=$(berthctl allocations --state $state --output name 2>/dev/null) || return 0
        [ -z "$used" ] || return 0
    done
    return 1
}

# Before the agent's files go; the service has ended. $1: the result of has_addresses.
remove_from_host() {
    drop_cache
    if [ "$1" = yes ]; then
        echo "berth: addresses are in use, or the agent did not answer: pods keep their network, and the plugins in" >&2
        echo "  /opt/cni/bin stay, which note the end of a pod for the next agent" >&2
    else
        "$AGENT" uninstall --keep-state >/dev/null
    fi
}

# All that is left, except an administrator's files. A tarball's service or a cluster's agent may be here since.
purge() {
    if [ -e /opt/berth/current ] || /opt/cni/bin/berth --probe live >/dev/null 2>&1; then
        echo "berth: another installation serves this host; registry, logs and plugins stay" >&2
        return
    fi
    for plugin in berth berth-coordinator berth-ifacer coordinator ifacer; do
        if grep -qs "CNI plugins berth, coordinator and ifacer" "/opt/cni/bin/$plugin"; then rm -f "/opt/cni/bin/$plugin"; fi
    done
    rm -rf /var/lib/berth /var/cache/berth /run/berth
    rm -f /var/log/vendor/coordinator.log* /var/log/vendor/audit.jsonl*
    rmdir /var/log/vendor /etc/berth/pools.d /etc/berth 2>/dev/null || true
}
