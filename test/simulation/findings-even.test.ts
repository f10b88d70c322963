import { repeatFindings } from "./findings.ts";

repeatFindings("even");
