"""Peers of IEC 60870-5-104 by c104 (lib60870): `iec104.py station ADDRESS`, `iec104.py control ADDRESS`.

The station reports 1,000 measured values, the other one sends 100 set points. Each prints what it has received. A set point
is sent again until c104 has seen its confirmation: sometimes it does not notice one that has arrived, with the bridge of the
kernel alone as well, so that the station may receive a set point more than once in succession.
"""

import sys
import threading
import time

import c104

VALUES, SET_POINTS = 1000, 100
MEASURED, SET_POINT = 11, 12
LIMIT = 120


def station(address):
    server = c104.Server(ip=address, port=2404, max_connections=1)
    point_of = server.add_station(common_address=1).add_point
    measured = point_of(io_address=MEASURED, type=c104.Type.M_ME_NC_1)
    set_point = point_of(io_address=SET_POINT, type=c104.Type.C_SE_NC_1)
    received, is_complete = [], threading.Event()

    def on_receive(point: c104.Point, previous_info: c104.Information, message: c104.IncomingMessage) -> c104.ResponseState:
        received.append(int(point.value))
        if len(received) == SET_POINTS:
            is_complete.set()
        return c104.ResponseState.SUCCESS

    set_point.on_receive(on_receive)
    server.start()
    until = time.monotonic() + LIMIT
    while not server.has_active_connections and time.monotonic() < until:
        time.sleep(0.02)
    for number in range(VALUES):
        measured.value = float(number)
        while not measured.transmit(cause=c104.Cot.SPONTANEOUS) and time.monotonic() < until:
            time.sleep(0.01)
        if number % 10 == 0:
            time.sleep(0.01)
    is_complete.wait(max(0, until - time.monotonic()))
    # The answer to the last command is on its way.
    time.sleep(1)
    server.stop()
    print("".join(f"{value}\n" for value in received), end="", flush=True)


def control(address):
    client = c104.Client(command_timeout_ms=1000)
    connection = client.add_connection(ip=address, port=2404, init=c104.Init.NONE)
    point_of = connection.add_station(common_address=1).add_point
    measured = point_of(io_address=MEASURED, type=c104.Type.M_ME_NC_1)
    set_point = point_of(io_address=SET_POINT, type=c104.Type.C_SE_NC_1)
    received = []

    def on_receive(point: c104.Point, previous_info: c104.Information, message: c104.IncomingMessage) -> c104.ResponseState:
        received.append(int(point.value))
        return c104.ResponseState.SUCCESS

    measured.on_receive(on_receive)
    client.start()
    until, sent = time.monotonic() + LIMIT, 0
    while (sent < SET_POINTS or len(received) < VALUES) and time.monotonic() < until:
        # c104 sends STARTDT from another thread, which sometimes does not notice that the connection is open.
        if connection.state == c104.ConnectionState.OPEN_MUTED:
            connection.unmute()
        if sent < SET_POINTS and connection.state == c104.ConnectionState.OPEN:
            set_point.value = float(sent)
            sent += bool(set_point.transmit(cause=c104.Cot.ACTIVATION))
        else:
            time.sleep(0.02)
    client.stop()
    print("".join(f"{value}\n" for value in received), end="", flush=True)


if __name__ == "__main__":
    {"station": station, "control": control}[sys.argv[1]](sys.argv[2])
