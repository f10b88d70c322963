/** Runs Maven on the embedding. */
export function maven(...args: string[]): string;
