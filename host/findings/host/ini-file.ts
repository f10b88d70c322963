/** Configuration of systemd and NetworkManager: sections of assignments, and which of several files counts. */

/** Texts of files by their paths. */
export type HostFiles = ReadonlyMap<string, string>;

export interface Assignment {
  readonly section: string;
  readonly key: string;
  readonly value: string;
  /** Path of the file. */
  readonly file: string;
}

/** Returns the assignments in their order. A line that ends in a backslash goes on in the next one. */
export function parseIni([file, text]: readonly [path: string, text: string]): Assignment[] {
  let section = "";
  return text
    .replaceAll(/\\\n/g, " ")
    .split("\n")
    .flatMap((raw) => {
      const line = raw.trim();
      section = /^\[(.*)\]$/.exec(line)?.[1] ?? section;
      const [, key, value = ""] = /^([^#;=[][^=]*?)\s*=\s*(.*)$/.exec(line) ?? [];
      return key === undefined ? [] : [{ section, key, value, file }];
    });
}

/** Returns the files of these folders, sorted by their names; of several with one name that in the first folder. */
export function mergeFolders(files: HostFiles, folders: readonly string[]): (readonly [path: string, text: string])[] {
  const byName = new Map<string, readonly [string, string]>();
  for (const folder of folders) {
    for (const file of files) {
      const name = file[0].slice(folder.length + 1);
      if (file[0] === `${folder}/${name}` && !name.includes("/") && !byName.has(name)) byName.set(name, file);
    }
  }
  return [...byName.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, file]) => file);
}
