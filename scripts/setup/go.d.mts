/** What every call of the `go` command is given. */
export const GO_ENVIRONMENT: Record<string, string>;
/** The path of the `go` command. */
export function requireGo(): string;
