/** The project's site of this documentation, without a slash at the end. */
export const DOCUMENTATION = "https://vendor.io/berth/docs";

/** Returns the URL of a page or a section, `host.html#firewalld`. */
export function documentation(page: string): string {
  return `${DOCUMENTATION}/${page}`;
}
