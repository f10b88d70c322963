/** Numbers of rule messages, as the kernel spells them. Sources: linux/rtnetlink.h, linux/fib_rules.h. */

export const RTM_NEWRULE = 32;
export const RTM_DELRULE = 33;
export const RTM_GETRULE = 34;

export const FRA_DST = 1;
export const FRA_SRC = 2;
export const FRA_IIFNAME = 3;
export const FRA_GOTO = 4;
export const FRA_PRIORITY = 6;
export const FRA_FWMARK = 10;
export const FRA_SUPPRESS_PREFIXLEN = 14;
export const FRA_TABLE = 15;
export const FRA_FWMASK = 16;
export const FRA_OIFNAME = 17;
export const FRA_PROTOCOL = 21;

/** Look up the table. */
export const FR_ACT_TO_TBL = 1;
export const FR_ACT_GOTO = 2;

/** The rule applies to packets that do not match. */
export const FIB_RULE_INVERT = 0x2;
/** State of a rule, not part of its definition: unresolved goto, absent device. */
export const FIB_RULE_STATE = 0x4 | 0x8 | 0x10;
