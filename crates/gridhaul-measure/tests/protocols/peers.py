"""Other implementations at the other end of a connection: `python3 peers.py ROLE PORT [NAME]`.

A sender sends MESSAGES; a receiver prints each message that it receives as hexadecimal digits.
"""

import os
import struct
import sys
import time

MESSAGES = [b"\0", b"a", bytes(range(256)), b"x" * 5000]


def report(message):
    print(bytes(message).hex(), flush=True)


def amqp_0_9_1(port, queue):
    """Sends through the queue of a running measurement, or another queue, and receives what it sent."""
    import pika

    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port))
    channel = connection.channel()
    channel.queue_declare(queue)
    for message in MESSAGES:
        channel.basic_publish("", queue, message)
    for _ in MESSAGES:
        while True:
            method, _, body = channel.basic_get(queue, auto_ack=True)
            if method:
                break
            time.sleep(0.01)
        report(body)
    channel.queue_delete(queue)
    connection.close()


def amqp_0_9_1_sender(port, queue):
    """Sends to the queue of a subscriber."""
    import pika

    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port))
    for message in MESSAGES:
        connection.channel().basic_publish("", queue, message)
    connection.close()


def amqp_1_0_sender(port, node):
    """Sends to the node of a subscriber."""
    from proton import Message
    from proton.utils import BlockingConnection

    connection = BlockingConnection(f"amqp://guest:guest@127.0.0.1:{port}", allowed_mechs="PLAIN")
    sender = connection.create_sender(node)
    for message in MESSAGES:
        sender.send(Message(body=message, inferred=True))
    connection.close()


def mqtt_sender(port, topic):
    """Publishes by MQTT 5 with QoS 1."""
    import paho.mqtt.client as mqtt

    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
    client.connect("127.0.0.1", port)
    client.loop_start()
    for message in MESSAGES:
        client.publish(topic, message, qos=1).wait_for_publish(10)
    client.disconnect()


def modbus_sender(port, _):
    """Writes registers: the length of the message, and its bytes."""
    from pymodbus.client import ModbusTcpClient

    client = ModbusTcpClient("127.0.0.1", port=port)
    client.connect()
    for message in [message for message in MESSAGES if len(message) <= 244]:
        padded = message + b"\0" * (len(message) % 2)
        words = [int.from_bytes(padded[at : at + 2], "big") for at in range(0, len(padded), 2)]
        assert not client.write_registers(0, [len(message)] + words).isError()
    assert client.read_holding_registers(0, count=1).isError(), "an unsupported function"
    client.close()


def zeromq(kind, port):
    import zmq

    socket = zmq.Context.instance().socket(kind)
    socket.connect(f"tcp://127.0.0.1:{port}")
    return socket


def zeromq_push(port, _):
    import zmq

    socket = zeromq(zmq.PUSH, port)
    for message in MESSAGES:
        socket.send(message)
    socket.close(linger=10_000)
    zmq.Context.instance().term()


def zeromq_pull(port, _):
    import zmq

    socket = zeromq(zmq.PULL, port)
    for _ in MESSAGES:
        report(socket.recv())


def zeromq_sub(port, _):
    import zmq

    socket = zeromq(zmq.SUB, port)
    socket.subscribe(b"")
    for _ in MESSAGES:
        report(socket.recv())


def nanomsg_push(port, _):
    import pynng

    with pynng.Push0(dial=f"tcp://127.0.0.1:{port}", send_timeout=10_000) as socket:
        for message in MESSAGES:
            socket.send(message)
        time.sleep(0.5)


def nanomsg_pull(port, _):
    import pynng

    with pynng.Pull0(dial=f"tcp://127.0.0.1:{port}", recv_timeout=10_000) as socket:
        for _ in MESSAGES:
            report(socket.recv())


def xmpp(port, receiver):
    """Exchanges the messages through a server: sends them to the address of a subscriber, then to itself, and prints what
    arrives. An account and its password are the same word."""
    import asyncio
    from xml.etree import ElementTree

    import slixmpp

    name = "{urn:gridhaul:measure}Octets"
    user = receiver.split("@")[0]
    domain = receiver.split("@")[1].split("/")[0]
    client = slixmpp.ClientXMPP(f"{user}@{domain}/slixmpp", user)
    client.enable_direct_tls = client.enable_starttls = False
    client.enable_plaintext = True
    client.plugin["feature_mechanisms"].unencrypted_plain = True
    done = asyncio.get_event_loop().create_future()
    received = []

    def started(_):
        for address in [receiver, client.boundjid.full]:
            for message in MESSAGES:
                element = ElementTree.Element(name)
                element.text = message.hex()
                stanza = client.make_message(mto=address)
                stanza.append(element)
                stanza.send()

    def arrived(stanza):
        received.append(bytes.fromhex(stanza.xml.find(name).text))
        if len(received) == len(MESSAGES):
            done.set_result(None)

    client.add_event_handler("session_start", started)
    handler = slixmpp.xmlstream.handler.Callback
    client.register_handler(handler("octets", slixmpp.xmlstream.matcher.MatchXPath("{jabber:client}message/" + name), arrived))
    client.connect("127.0.0.1", port)
    client.loop.run_until_complete(asyncio.wait_for(done, 20))
    for message in received:
        report(message)
    client.loop.run_until_complete(client.disconnect())


def iec104(port, _):
    """A controlling station: prints the values of the objects in the order of their addresses."""
    import c104

    client = c104.Client()
    connection = client.add_connection("127.0.0.1", port, init=c104.Init.NONE)
    station = connection.add_station(1)
    values = {}

    def on_receive(point: c104.Point, previous_info: c104.Information, message: c104.IncomingMessage) -> c104.ResponseState:
        values[point.io_address] = point.value
        return c104.ResponseState.SUCCESS

    points = [station.add_point(address, c104.Type.M_ME_TF_1) for address in range(1, 5)]
    for point in points:
        point.on_receive(on_receive)
    client.start()
    # 100 s at most, on a busy machine.
    for _ in range(5000):
        if len(values) == 4:
            break
        # c104 sends STARTDT from another thread, which sometimes does not notice that the connection is open.
        if connection.state == c104.ConnectionState.OPEN_MUTED:
            connection.unmute()
        time.sleep(0.02)
    print(" ".join(str(values.get(address)) for address in range(1, 5)), flush=True)
    client.stop()


def dnp3(port, _):
    """A master: prints the answers to its first requests, and the objects of the first poll of class 1 that has any."""
    import logging

    from dnp3py import DNP3Config, DNP3Master
    from dnp3py.core.config import AppLayerFunction

    logging.disable()
    master = DNP3Master(DNP3Config(port=port, confirm_required=False, response_timeout=100.0))
    # The package confirms responses in frames that request a confirmation of the link, which the setting above turns off for requests.
    build = master._datalink.build_frame
    master._datalink.build_frame = lambda data, confirmed=False, fcv=False: build(data, confirmed=confirmed, fcv=fcv)
    master.open()
    # The outstation begins with an unsolicited response, which the methods for polls would take for their answer.
    master._receive_response()
    # A usual start: the link is reset, and unsolicited responses are disabled. The outstation does not support restarts.
    master._send_frame(master._datalink.build_reset_link())
    master._receive_frame(100.0)
    is_disabled = master.disable_unsolicited()
    restart = master._application.build_request(AppLayerFunction.COLD_RESTART)
    print(is_disabled, master._send_request(restart).iin2, flush=True)
    # 100 s at most, on a busy machine.
    for _ in range(5000):
        objects = master._send_request(master._application.build_class_poll(1)).raw_data
        if objects:
            print(objects.hex(), flush=True)
            break
        time.sleep(0.02)
    master.close()


def c37_118(port, _):
    """A concentrator: prints name of the station, bytes of the phasors and analog value of a data frame."""
    import collections
    import collections.abc
    import logging

    # The package is older than Python 3.10, which has removed this name.
    collections.Sequence = collections.abc.Sequence
    from synchrophasor.pdc import Pdc

    logging.disable()
    concentrator = Pdc(pmu_port=port)
    concentrator.run()
    configuration = concentrator.get_config()
    concentrator.start()
    frame = concentrator.get()
    # The method for phasors converts them to magnitude and angle.
    phasors = b"".join(phasor.to_bytes(4, "big") for phasor in frame._phasors)
    print(configuration.get_station_name().strip(), phasors.hex(), frame.get_analog()[0], flush=True)
    concentrator.quit()


def sampled_values(application, _):
    """A subscriber of libiec61850 on the loopback device: prints number, identifier and samples of six frames."""
    from pyiec61850.sv import SVSubscriber

    frames = []
    subscriber = SVSubscriber("lo")
    subscriber.set_app_id(application)
    subscriber.set_listener(frames.append)
    receive_six(subscriber, frames)
    for frame in frames[:6]:
        samples = struct.pack(f">{len(frame.values)}i", *frame.values)
        print(frame.smp_cnt, frame.sv_id, samples.hex(), flush=True)
    # To stop the receiver can take for ever: its thread waits for the interpreter, which waits for the thread.
    os._exit(0)


def goose(application, reference):
    """A subscriber of libiec61850 on the loopback device: prints state number, parse error and number of values of six frames."""
    from pyiec61850.goose import GooseSubscriber

    frames = []
    subscriber = GooseSubscriber("lo", reference)
    subscriber.set_app_id(application)
    subscriber.set_listener(frames.append)
    receive_six(subscriber, frames)
    for frame in frames[:6]:
        print(frame.st_num, frame.parse_error, frame.num_data_set_entries, flush=True)
    os._exit(0)


def dlms(_, notification):
    """Reads a notification, given as hexadecimal digits: prints the type and value of each element."""
    from xml.etree import ElementTree

    from gurux_dlms import GXDLMSTranslator

    document = ElementTree.fromstring(GXDLMSTranslator().pduToXml(bytes.fromhex(notification)))
    for element in document.iter():
        print(element.tag, element.get("Value") or element.get("Qty") or "", flush=True)


def receive_six(subscriber, frames):
    """On the loopback device the library may receive each frame twice, at its departure and at its arrival."""
    subscriber.start()
    # 100 s at most, on a busy machine.
    for _ in range(5000):
        if len(frames) >= 6:
            break
        time.sleep(0.02)


if __name__ == "__main__":
    role, port = sys.argv[1], int(sys.argv[2])
    globals()[role](port, sys.argv[3] if len(sys.argv) > 3 else "")
