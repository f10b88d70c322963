/** Why mutants survive: of a file, those whose original text contains this. */
export const NOTES: readonly { readonly file: string; readonly text: string; readonly note: string }[] = [];
