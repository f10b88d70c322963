/** Points in time as RFC 3339 has them: `2026-12-31T18:00:00Z`. */
import * as z from "zod";

const FORM = 'a time such as "2026-12-31T18:00:00Z"';

/** In milliseconds of the wall clock. */
export const moment = z.iso
  .datetime({ offset: true, error: FORM })
  .max(40, { error: FORM })
  .transform((text) => Date.parse(text));
