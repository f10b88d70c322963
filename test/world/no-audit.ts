import type { Audit } from "../../host/agent/log/audit.ts";

/** An audit log without lines. */
export const NO_AUDIT: Audit = { remembersRefusals: false, record: () => {}, refuse: () => true, served: () => {} };
