/** A part of a release that others wrote, as SBOM and THIRD_PARTY_LICENSES state it. */
export interface Component {
  readonly type: "application" | "library" | "data";
  readonly name: string;
  /** Absent if its publisher states none. */
  readonly version?: string;
  /** SPDX identifier or expression. */
  readonly license: string;
  /** Package URL. */
  readonly purl?: string;
  /** The licence with the copyright notices. */
  readonly text: string;
  /** The place of the source code, if the licence asks for it. */
  readonly source?: string;
  /** Name of the component that contains this one. */
  readonly within?: string;
}
