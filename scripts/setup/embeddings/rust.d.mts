/**
 * Cargo, what rustc says of itself, and the environment that both need. Throws SetupError when they are not there or
 * too old.
 */
export function requireRust(): { cargo: string; compiler: string; env: NodeJS.ProcessEnv };
