-- Recorded from 0.4.0 by test/lab/cluster/record-release.ts.
CREATE TABLE allocation (
  space     TEXT    NOT NULL,
  family    INTEGER NOT NULL CHECK (family IN (4, 6)),
  address   BLOB    NOT NULL CHECK (length(address) = CASE family WHEN 4 THEN 4 ELSE 16 END),
  length    INTEGER NOT NULL,
  pool      TEXT    NOT NULL,
  state     TEXT    NOT NULL CHECK (state IN ('Bound', 'Cooling', 'Kept', 'Quarantined')),
  owner     TEXT    NOT NULL,
  interface TEXT    NOT NULL,
  container TEXT    NOT NULL,
  network   TEXT    NOT NULL,
  namespace TEXT    NOT NULL,
  pod       TEXT    NOT NULL,
  boot      TEXT    NOT NULL,
  since     INTEGER NOT NULL,
  free_at   INTEGER NOT NULL,
  version   INTEGER NOT NULL, netns TEXT NOT NULL DEFAULT '', mac TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT '' CHECK (reason IN ('', 'Conflict')), foreign_mac TEXT NOT NULL DEFAULT '', parent TEXT NOT NULL DEFAULT '', probe_at INTEGER NOT NULL DEFAULT 0, confirmed INTEGER NOT NULL DEFAULT 0 CHECK (confirmed IN (0, 1)), workload TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (space, family, address)
) STRICT, WITHOUT ROWID;
CREATE TABLE identity (
  id         TEXT    NOT NULL,
  generation INTEGER NOT NULL,
  loss       TEXT    NOT NULL,
  loss_boot  TEXT    NOT NULL,
  room       BLOB    NOT NULL
) STRICT;
CREATE INDEX by_container ON allocation (container, interface) WHERE container <> '';
CREATE INDEX by_owner ON allocation (owner);
CREATE INDEX cooling ON allocation (free_at) WHERE state = 'Cooling';
CREATE INDEX quarantined ON allocation (probe_at) WHERE state = 'Quarantined';
CREATE INDEX released ON allocation (space, family, since) WHERE state = 'Cooling';
CREATE INDEX unattached ON allocation (since) WHERE container = '' AND state = 'Bound';
INSERT INTO allocation VALUES ('', 4, X'0A06005D', 24, 'blue', 'Bound', '84d15231-b574-4615-a9e2-7199d01a575b', 'eth0', 'e3644f5ae93b12003855d6e892f2273b72bfb82b8c533ec7e1ea07b425f2f6aa', 'underlay', 'shop', 'db-0', '606efa44-cdec-4fd5-b667-06c05fe8d912', 43724357, 0, 2, '/run/netns/bw-32386-1', '', '', '', '', 0, 1, '{"kind":"StatefulSet","namespace":"shop","name":"db","uid":"2b53bd91-93bf-4e81-adfd-06cbe93aaeca","member":"db-0"}');
INSERT INTO allocation VALUES ('', 4, X'0A06008B', 24, 'blue', 'Bound', '451aee1f-c153-4b63-b7ea-9fdaa640af78', 'eth0', 'bc64ec0891ee47bd57788447b7d5b6cd43db25a8b301b0909b5898a757b4144e', 'underlay', 'shop', 'web', '606efa44-cdec-4fd5-b667-06c05fe8d912', 43724611, 0, 6, '/run/netns/bw-32386-1', '', '', '', '', 0, 1, '');
INSERT INTO identity VALUES ('8a506a450a9c1fcf671624d5876666d4', 13, '', '', X'23A400B0B0C9E7AF');
PRAGMA user_version = 4;
