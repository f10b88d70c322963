/**
 * The version of this build, from package.json.
 * Called by the executables.
 * Effects: none.
 */
import manifest from "../../package.json" with { type: "json" };

export const VERSION: string = manifest.version;
