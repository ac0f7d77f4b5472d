# SPDX-License-Identifier: Apache-2.0
"""Certificates of a private authority, for tests of TLS."""

import os
import subprocess


class Authority:
    """An authority whose files, such as its certificate, are in a folder."""

    def __init__(self, folder: str, name: str = 'authority'):
        self._folder = folder
        self._base = os.path.join(folder, name)
        self.path = f'{self._base}.crt'
        # Python 3.13 refuses an authority that does not say its use.
        _openssl('req', '-x509', *_KEY, '-subj', f'/CN={name}',
                 '-addext', 'keyUsage=critical,keyCertSign,cRLSign',
                 '-keyout', f'{self._base}.key', '-out', self.path)

    def certificate(self, name: str, alternative: str = '') -> str:
        """Return the path of a file with a certificate and its key."""
        path = os.path.join(self._folder, f'{name}.pem')
        request = f'{path}.csr'
        _openssl('req', '-new', *_KEY, '-subj', f'/CN={name}',
                 '-keyout', path, '-out', request)
        extensions = f'{path}.ext'
        with open(extensions, 'w') as opened:
            opened.write('authorityKeyIdentifier=keyid\n')
            if alternative:
                opened.write(f'subjectAltName={alternative}\n')
        signed = f'{path}.crt'
        _openssl('x509', '-req', '-in', request, '-CA', self.path, '-CAkey',
                 f'{self._base}.key', '-CAcreateserial', '-extfile',
                 extensions, '-out', signed)
        with open(path, 'a') as key, open(signed) as certificate:
            key.write(certificate.read())
        return path


_KEY = ('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes')


def _openssl(*words: str) -> None:
    subprocess.run(['openssl', *words], check=True, capture_output=True)
