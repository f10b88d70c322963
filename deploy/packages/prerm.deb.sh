if [ "$1" = remove ]; then
    if has_addresses; then used=yes; else used=no; fi
    if [ -d /run/systemd/system ]; then deb-systemd-invoke stop $UNIT >/dev/null || true; fi
    remove_from_host $used
fi
