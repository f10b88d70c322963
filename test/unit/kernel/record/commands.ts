/**
 * What record.ts records. The tests of the families have a row for each command that changes something.
 * Effects: none.
 */

export const preparation = [
  "ip link add v0 index 7 address 02:00:00:00:00:01 type veth peer name v1 index 8 address 02:00:00:00:00:02",
  "ip link set v0 up",
  "ip link set v1 up",
  "ip link add b0 index 9 address 02:00:00:00:00:06 type bridge",
  "ip addr add 10.6.0.254/24 dev v0",
  "ip addr add fd00::254/64 dev v0 nodad",
];

const bondOptions =
  "mode 802.3ad miimon 100 updelay 200 downdelay 300 xmit_hash_policy layer3+4 min_links 1 lacp_rate fast " +
  "ad_actor_sys_prio 7 ad_actor_system 02:00:00:00:00:0b";

export const commands = {
  link: [
    "ip link add address 02:00:00:00:00:03 mtu 1400 name v2 type veth peer address 02:00:00:00:00:04 name p2",
    "ip link add link v0 name m0 address 02:00:00:00:00:05 type macvlan mode bridge",
    "ip link add b1 type bridge",
    "ip link add d0 type dummy",
    "ip link add link v0 name v0.5 type vlan id 5",
    "ip link add link v0 name v0.6 type vlan proto 802.1ad id 4094",
    `ip link add bond7 type bond ${bondOptions}`,
    "ip link add bond8 type bond mode active-backup arp_interval 50 arp_ip_target 10.6.0.1,10.6.0.2",
    "ip link set v1 master b0",
    "ip link set v1 nomaster",
    "ip link set v1 mtu 1400",
    "ip link set v1 address 02:00:00:00:00:0a",
    "ip link set v1 down",
    "ip link set v1 name w1",
    "ip link set w1 up",
    "ip link del m0",
    "ip link set w1 master b0",
    "ip link add link v0 name m1 index 20 address 02:00:00:00:00:07 type macvlan mode private",
    "ip link show dev w1",
    "ip link show dev m1",
    "ip link show dev b0",
    "ip link show dev lo",
  ],
  address: [
    "ip addr add 10.6.0.21/24 dev v0",
    "ip addr add fd00::21/64 dev v0 nodad",
    "ip addr add 192.0.2.1 peer 192.0.2.2/31 dev v0 scope link",
    "ip addr add 10.6.0.22/32 dev v0 noprefixroute",
    "ip addr show dev v0",
    "ip addr del 192.0.2.1 peer 192.0.2.2/31 dev v0",
    "ip addr del 10.6.0.99/24 dev v0",
  ],
  route: [
    "ip route add 10.9.0.0/16 via 10.6.0.1 dev v0 table 500 metric 7 src 10.6.0.254 proto 99",
    "ip route replace default via 10.6.0.1 dev v0 table 101",
    "ip route add 10.8.0.1/32 dev v0 scope link",
    "ip route add 203.0.113.0/24 via 192.168.77.1 dev v0 onlink",
    "ip route add fd09::/64 via fd00::1 dev v0 table 101",
    "ip route add 10.11.0.0/16 via inet6 fd00::1 dev v0",
    "ip route add blackhole 10.12.0.0/16",
    "ip route add 10.13.0.0/16 via 10.6.0.1 dev v0 mtu lock 1300",
    "ip route add 10.99.0.0/16 nexthop via 10.6.0.1 dev v0 weight 2 nexthop via inet6 fd00::1 dev v0",
    "ip -6 route add fd99::/64 nexthop via fd00::1 dev v0 nexthop via fd00::2 dev v0 weight 3",
    "ip route show table 500",
    "ip -4 route show table all",
    "ip -6 route show table all",
    "ip route del 10.9.0.0/16 table 500",
  ],
  rule: [
    "ip rule add pref 900 from all lookup 500",
    "ip rule add pref 99 from 10.6.0.21/32 to 10.0.0.0/8 fwmark 0x1/0x1 iif v0 lookup 101",
    "ip -6 rule add pref 99 from fd00::21/128 lookup 101",
    "ip rule add pref 98 not from 10.7.0.0/16 fwmark 0x80000000/0xffffffff oif v0 lookup 102",
    "ip rule add pref 97 from all lookup main suppress_prefixlength 0",
    "ip rule add pref 96 from all ipproto tcp dport 80 blackhole",
    "ip rule show",
    "ip -6 rule show",
    "ip rule del pref 900 from all lookup 500",
    "ip rule del pref 901 from all lookup 500",
  ],
  neighbour: [
    "ip neigh replace 10.6.0.9 lladdr 02:00:00:00:00:09 nud permanent dev v0",
    "ip neigh add fd00::9 lladdr 02:00:00:00:00:09 nud permanent dev v0",
    "ip neigh add proxy 10.6.0.77 dev v0",
    "ip neigh show dev v0",
    "ip neigh show proxy dev v0",
    "ip neigh del 10.6.0.9 dev v0",
    "ip neigh del 10.6.0.10 dev v0",
  ],
  nftables: ["nft -f test/unit/kernel/record/ruleset.nft", "nft list ruleset"],
} as const;
