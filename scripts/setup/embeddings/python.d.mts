/** The path of a Python with build and twine, of the set-up target `versions`. */
export function publishingPython(): string;
