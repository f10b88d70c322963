/** Another seed: evaluated anew, also by a worker that has run one. */
await import(`./surroundings-series.test.ts?${"b"}`);
