/** What Maven is called with, by the set-up and by the tests. */
export const mavenArguments: readonly string[];
export const mavenEnvironment: { readonly MAVEN_OPTS: string };
