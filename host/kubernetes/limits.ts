/**
 * The limits of talking to the API server, each explained in docs/limits.md.
 * Effects: none.
 */

/** How long a call to the API server is tried again when its caller names no limit: milliseconds. Shorter than a runtime waits for a plugin. */
export const CALL_PATIENCE_MS = 15_000;

/** How long one attempt of a call for a pod that is being started may take: milliseconds. A connection that leads nowhere costs this much. */
export const POD_ATTEMPT_MS = 5_000;

/** How long one attempt of any other call may take: milliseconds. A page of 500 objects from a busy server needs more than one object. */
export const BACKGROUND_ATTEMPT_MS = 10_000;

/** How long opening a connection to the API server may take: milliseconds. */
export const CONNECT_MS = 3_000;

/** Most connections for calls; watches have their own. Eight bring as much as a server of two processors creates. */
export const MAX_CONNECTIONS = 8;

/** Most calls for pods under way at once: one fewer than there are connections, so that the others never stand still. */
export const MAX_POD_CALLS = 7;

/** Most other calls under way at once: half of the connections stay free for pods. */
export const MAX_BACKGROUND_CALLS = 4;

/** How long a connection without a call stays open: milliseconds. Shorter than the server's 90 seconds. */
export const IDLE_CONNECTION_MS = 45_000;

/** How long a connection may be silent before the kernel asks whether the other end is there: milliseconds. */
export const PEER_SILENCE_MS = 10_000;

/** How long the kernel waits between two such questions: milliseconds. */
export const PEER_QUESTION_MS = 3_000;

/** How many such questions without an answer end a connection. */
export const PEER_QUESTIONS = 3;

/** The first pause after a failure: milliseconds. Each pause is a random part of a limit that doubles. */
export const BACK_OFF_FIRST_MS = 100;

/** Where the limit of a pause stops growing: milliseconds. So long after an outage everything has been tried again. */
export const BACK_OFF_MAX_MS = 1_500;

/** Longest wait that the server may ask for by `Retry-After`: milliseconds. */
export const RETRY_AFTER_MAX_MS = 5_000;

/** How long credentials are used before their files are looked at again: milliseconds. */
export const CREDENTIALS_FRESH_MS = 1_000;

/** How long a kubeconfig's exec plugin may take: milliseconds. One that hangs is not started a second time. */
export const EXEC_PLUGIN_MS = 20_000;

/** Largest answer of the API server that is read: bytes. A page of a list that is larger is read in smaller pages. */
export const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/** Longest line of a watch, which is one object: bytes. etcd takes objects of 1.5 MB. */
export const MAX_EVENT_BYTES = 16 * 1024 * 1024;

/** Longest text of the server that an error repeats: characters. */
export const MAX_SHOWN_ANSWER = 500;

/**
 * How long the head of a watch's answer may take: milliseconds. After twice that a connection on which the server does not answer at all is
 * given up, with all watches on it.
 */
export const WATCH_HEAD_MS = 5_000;

/** How long a watch may be silent: milliseconds. The server sends a bookmark about every minute. */
export const WATCH_SILENCE_MS = 150_000;

/** Objects on one page of a list. */
export const LIST_PAGE = 500;

/** How long one page of a list is tried: milliseconds. Then its reflector says that the server cannot be reached, and goes on trying. */
export const LIST_PATIENCE_MS = 10_000;

/** After how long the server ends a watch at the earliest: seconds. It is a random time up to twice as long, so that not all agents come back at once. */
export const WATCH_LIFE_S = 300;

/** How long after an outage a watch may keep silent about an object that has changed meanwhile: milliseconds. Then all are listed: etcd may be an older copy. */
export const UNTOLD_MS = 2_000;

/** A watch that ends sooner counts as a failure, after which there is a pause: milliseconds. */
export const WATCH_SHORT_MS = 2_000;

/** How often a collection that the server does not know is looked for again when no event says that its kind was installed: milliseconds. */
export const MISSING_LOOK_MS = 30_000;

/** Over which time the looks of all nodes are spread once a kind was installed: milliseconds. Looks in vain follow at twice that time, four times it, and so on. */
export const KIND_LOOK_SPREAD_MS = 500;

/** Longest note of an event: bytes. The server refuses longer ones. */
export const MAX_EVENT_NOTE = 1_024;

/** How long the same event is not sent again: milliseconds. */
export const EVENT_REPEAT_MS = 300_000;

/** Time between two events: milliseconds. Events tell people something, and must not keep the server busy. */
export const EVENT_GAP_MS = 300;

/** Most events that wait to be sent; what comes then is dropped. */
export const MAX_WAITING_EVENTS = 100;

/** Most different notes for one object and reason until one may be sent again: a text with a count or an address in it is always another. */
export const MAX_NOTES = 4;

/** Most objects and reasons of events that are remembered so that they are not sent again. */
export const MAX_REMEMBERED_EVENTS = 1_000;

/** How long sending one event is tried: milliseconds. */
export const EVENT_PATIENCE_MS = 5_000;

/** How long a Lease that its holder no longer renews keeps others away: milliseconds, counted by each of them since it last saw the Lease change. */
export const LEASE_DURATION_MS = 15_000;

/** How long a holder leads after the start of its last successful renewal: milliseconds. Shorter than the Lease's duration by what a call on its way may take. */
export const LEASE_RENEW_DEADLINE_MS = 10_000;

/** How often a Lease is renewed, and looked at by who waits for it: milliseconds, more or less by a quarter. */
export const LEASE_RETRY_MS = 2_000;

/** How long giving a Lease back is tried when a holder stops: milliseconds. After that the next one waits for the Lease's duration. */
export const LEASE_RELEASE_MS = 3_000;
