/** The labels by which Berth's pods are found in a cluster. */

/** Label that the chart gives to the pods of agents and controller. */
export const BERTH_LABELS = "app.kubernetes.io/name=berth";

/** Labels that the chart gives to the agents' pods. */
export const AGENT_LABELS = `${BERTH_LABELS},app.kubernetes.io/component=agent`;

/** Labels that the chart gives to the controller's pods. */
export const CONTROLLER_LABELS = `${BERTH_LABELS},app.kubernetes.io/component=controller`;
