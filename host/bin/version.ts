import manifest from "../../package.json" with { type: "json" };

/** Set in bundles, by scripts/setup/version.mjs. */
declare const BERTH_VERSION: string | undefined;

/** The version of this build; outside a bundle the version of package.json. */
export const VERSION: string = typeof BERTH_VERSION === "string" ? BERTH_VERSION : manifest.version;
