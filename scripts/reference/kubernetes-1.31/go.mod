// The oldest Kubernetes that Berth promises to work with: kube-apiserver, kubelet, kube-controller-manager and
// kube-scheduler, for the long tests. It is built in a copy of its module, as CRI-O; the hashes are those of the modules
// that are folders of its repository.
module berth.local/reference/kubernetes-1.31

go 1.25.0

tool (
	k8s.io/kubernetes/cmd/kube-apiserver
	k8s.io/kubernetes/cmd/kube-controller-manager
	k8s.io/kubernetes/cmd/kube-scheduler
	k8s.io/kubernetes/cmd/kubelet
)

require k8s.io/kubernetes v1.31.0
