/** Another seed. */
import "./surroundings-series.test.ts";
