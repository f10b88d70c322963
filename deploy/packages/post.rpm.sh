install_plugins
drop_cache
if [ -d /run/systemd/system ]; then
    systemd-tmpfiles --create berth.conf || true
    systemctl daemon-reload || true
    if [ "$1" = 1 ]; then systemctl enable $UNIT || true; fi
    systemctl restart $UNIT || true
fi
