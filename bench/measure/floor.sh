#!/bin/sh
# Floor of MQTT and AMQP over loopback, beside programs of others with the same broker: 100 messages of 132 B in a second.
#
# Needs the packages mosquitto, mosquitto-clients, rabbitmq-server, python3, maven and a Java runtime. Takes two minutes. The brokers
# have ports and folders of their own, and stop at the end.
set -eu
cd "$(dirname "$0")"
gridhaul=${GRIDHAUL:-gridhaul}
folder=$(mktemp -d)
processes=
stop() {
    for process in $processes; do
        kill "$process" 2> /dev/null && wait "$process" || true
    done
    rm -rf "$folder"
}
trap stop EXIT
fail() {
    echo "$1" >&2
    exit 1
}
# wait_for PORT LOG: until a broker listens.
wait_for() {
    for _ in $(seq 120); do
        ss -Hltn "src 127.0.0.1:$1" | grep -q . && return
        sleep 1
    done
    cat "$2" >&2
    fail "no broker listens at port $1"
}

mqtt=41883
printf 'listener %s 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\n' "$mqtt" > "$folder/mosquitto.conf"
mosquitto -c "$folder/mosquitto.conf" > "$folder/mosquitto.log" 2>&1 &
processes=$!
wait_for "$mqtt" "$folder/mosquitto.log"

echo "mosquitto_pub and mosquitto_sub"
timeout 60 mosquitto_sub -h 127.0.0.1 -p "$mqtt" -t floor -C 1100 -F '%U %p' > "$folder/arrivals" &
subscriber=$!
sleep 1
python3 timestamps.py | mosquitto_pub -h 127.0.0.1 -p "$mqtt" -t floor -l --nodelay
wait "$subscriber"
python3 timestamps.py --report < "$folder/arrivals"

echo "gridhaul measure latency mqtt"
"$gridhaul" measure latency mqtt --messages 1000 --broker "127.0.0.1:$mqtt" | sed -n '2,6p'

# Erlang's port mapper, then the broker, with the settings of `gridhaul measure latency amqp-0-9-1`.
amqp=45672
export ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT=45369
export HOME="$folder" RUNNING_UNDER_SYSTEMD=true RABBITMQ_USE_LONGNAME=true RABBITMQ_LOGS=-
export RABBITMQ_NODENAME=floor@127.0.0.1 RABBITMQ_NODE_PORT="$amqp" RABBITMQ_DIST_PORT=45673
export RABBITMQ_MNESIA_BASE="$folder/data" RABBITMQ_LOG_BASE="$folder/log" RABBITMQ_PID_FILE="$folder/pid"
export RABBITMQ_ENABLED_PLUGINS_FILE="$folder/plugins" RABBITMQ_CONFIG_FILE="$folder/rabbitmq" RABBITMQ_CONF_ENV_FILE=/dev/null
export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none"
echo '[].' > "$folder/plugins"
printf 'listeners.tcp.1 = 127.0.0.1:%s\ntcp_listen_options.nodelay = true\nlog.file = false\n' "$amqp" > "$folder/rabbitmq.conf"
epmd -port "$ERL_EPMD_PORT" -address 127.0.0.1 > "$folder/epmd.log" 2>&1 &
mapper=$!
/usr/lib/rabbitmq/bin/rabbitmq-server > "$folder/rabbitmq.log" 2>&1 &
processes="$processes $! $mapper"
wait_for "$amqp" "$folder/rabbitmq.log"
sleep 5
url="amqp://guest:guest@127.0.0.1:$amqp"

echo "PerfTest"
mvn -q -B -f pom.xml dependency:build-classpath -Dmdep.outputFile="$folder/classpath" > "$folder/maven.log" ||
    { cat "$folder/maven.log" >&2; fail "PerfTest cannot be installed"; }
java -cp "$(cat "$folder/classpath")" com.rabbitmq.perf.PerfTest --uri "$url" \
    --producers 1 --consumers 1 --rate 100 --size 132 --autoack --time 13 > "$folder/perf-test" 2>&1 || true
grep 'consumer latency min/median' "$folder/perf-test" | grep -v time || { cat "$folder/perf-test" >&2; fail "PerfTest failed"; }

echo "gridhaul measure latency amqp-0-9-1"
"$gridhaul" measure latency amqp-0-9-1 --messages 1000 --broker "$url" | sed -n '2,6p'
