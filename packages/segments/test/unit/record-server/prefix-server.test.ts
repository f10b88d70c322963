import { FakeRecordServer } from "../../fakes/record-server.ts";
import { suite } from "../../world/prefix-suite.ts";

for (const product of ["nautobot", "netbox"] as const)
  suite(`the fake of ${product}`, () => FakeRecordServer.start(product));
