if [ "$1" = 0 ]; then
    if has_addresses; then used=yes; else used=no; fi
    if [ -d /run/systemd/system ]; then systemctl disable --now $UNIT || true; fi
    remove_from_host $used
fi
