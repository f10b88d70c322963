/** What every call of the `go` command is given. */
export function goEnvironment(): Record<string, string>;
/** The path of the `go` command. */
export function requireGo(): string;
