/** Answers of an agent, from which wrong ones are made. */
import { answer } from "./scripted-agent.ts";

export const answers = [
  answer(200, '{"cniVersion":"1.0.0","ips":[{"address":"10.6.0.21/24","gateway":"10.6.0.1"}],"dns":{}}'),
  answer(200, "", { "Berth-Notice": "Pool blue is 95 % full", Date: "Fri, 20 Nov 2026 04:00:00 GMT" }),
  answer(503, '{"cniVersion":"1.0.0","code":101,"msg":"Pool \\"blue\\" is exhausted","details":"\u00e9\u20ac"}'),
  answer(400, '{"code":4,"msg":"Variable CNI_IFNAME is missing"}', { "Content-Type": "application/json" }),
];
