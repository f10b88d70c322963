case $1 in
install | upgrade) refuse_other_installation ;;
esac
