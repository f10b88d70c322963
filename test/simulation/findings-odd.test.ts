import { repeatFindings } from "./findings.ts";

repeatFindings("odd");
