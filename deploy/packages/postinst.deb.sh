if [ "$1" = configure ]; then
    install_plugins
    drop_cache
    deb-systemd-helper unmask $UNIT >/dev/null || true
    # Not again, if the administrator has disabled it.
    if deb-systemd-helper --quiet was-enabled $UNIT; then
        deb-systemd-helper enable $UNIT >/dev/null || true
    else
        deb-systemd-helper update-state $UNIT >/dev/null || true
    fi
    if [ -d /run/systemd/system ]; then
        systemd-tmpfiles --create berth.conf || true
        systemctl --system daemon-reload >/dev/null || true
        deb-systemd-invoke restart $UNIT >/dev/null || true
    fi
fi
